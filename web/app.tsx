// Starts the page: theme and shortcuts first, then the one-time code of a sign-in link, then what the address says.
import { render } from "preact";
import { LocationProvider } from "preact-iso/router";
import { listenForShortcuts } from "./keys.ts";
import { followModels } from "./models.ts";
import { takeCode } from "./one-time-code.ts";
import { Shell } from "./parts/shell.tsx";
import { SignIn } from "./parts/sign-in.tsx";
import { followServer } from "./server-facts.ts";
import { apiKey, forget, messageOf, signInByCode } from "./session.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
listenForShortcuts();
const code = takeCode();
if (code !== null) await signInByCode(code).catch((error: unknown) => forget(messageOf(error)));
followModels();
followServer();

function App() {
  return <LocationProvider>{apiKey.value === null ? <SignIn /> : <Shell />}</LocationProvider>;
}

render(<App />, document.getElementById("app")!);
