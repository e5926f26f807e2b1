// Says that the server does not answer. What the page shows stays; requests go out again when the server is back.
import { isLost } from "../server.ts";

export function Banner() {
  return (
    <div role="status">
      {isLost.value && (
        <p class="banner">
          <b>The server does not answer.</b> The page keeps trying and goes on by itself.
        </p>
      )}
    </div>
  );
}
