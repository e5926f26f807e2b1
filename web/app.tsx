// Starts the page: theme and shortcuts first, then the one-time code of a sign-in link, then what the address says.
import { render } from "preact";
import { Shell } from "./frame/shell.tsx";
import { SignIn } from "./frame/sign-in.tsx";
import { listenForShortcuts } from "./keys.ts";
import { followModels } from "./models.ts";
import { takeCode } from "./one-time-code.ts";
import { PAGES } from "./pages/pages.ts";
import { followUser } from "./playground/keeping.ts";
import { followMcpServers } from "./playground/mcp.ts";
import { startRouter } from "./router.ts";
import { followServer } from "./server-facts.ts";
import { apiKey, followOtherTabs, messageOf, signedOutBecause, signInByCode } from "./session.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
listenForShortcuts();
startRouter(PAGES.map(({ path }) => path));
const code = takeCode();
if (code !== null) {
  await signInByCode(code).catch((error: unknown) => {
    signedOutBecause.value = messageOf(error); // whoever is signed in stays so
  });
}
followOtherTabs();
followModels();
followServer();
followUser();
followMcpServers();

function App() {
  return apiKey.value === null ? <SignIn /> : <Shell />;
}

render(<App />, document.getElementById("app")!);
