// In the place of a page about training, for those who may not train.
import { useTitle } from "../parts/use-title.ts";
import { may } from "../server-facts.ts";

export function NoTraining() {
  useTitle("No training");
  return (
    <section class="plain">
      <h1>No training</h1>
      {may("training") ? (
        <p>This server was started without training, so it has no policies and no jobs.</p>
      ) : (
        <>
          <p>Policies and jobs need a token with the scope training. Yours may talk to the models only.</p>
          <p class="muted">
            An admin makes such a token on the page Access, or in a terminal:{" "}
            <code>flywheel tokens create --scope inference,training</code>
          </p>
        </>
      )}
      <p>
        <a href="/">To the playground</a>
      </p>
    </section>
  );
}
