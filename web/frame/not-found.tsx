// An address that no page has.
import { useTitle } from "../parts/use-title.ts";

export function NotFound() {
  useTitle("Nothing here");
  return (
    <section class="plain">
      <h1>Nothing here</h1>
      <p>
        No page has this address. <a href="/">Go to the playground.</a>
      </p>
    </section>
  );
}
