// What a page shows to a token that may not ask for what is on it, instead of the server's refusal.
import type { ComponentChildren } from "preact";
import type { Principal } from "../server-facts.ts";
import { facts, may, me } from "../server-facts.ts";

export interface NeedsScopeProps {
  scope: Principal["scopes"][number];
  title: string;
  children: ComponentChildren;
}

/** Shows `children` once it is known that the token has the scope. */
export function NeedsScope({ scope, title, children }: NeedsScopeProps) {
  if (me.value === null) return <p class="muted">…</p>;
  const isOff = scope === "training" && facts.value?.features.training === false;
  if (may(scope) && !isOff) return <>{children}</>;
  return (
    <section class="plain">
      <h1>{title}</h1>
      {isOff ? (
        <p>This server does not train, so there is nothing here.</p>
      ) : (
        <p>
          Your token, <b>{me.value.name}</b>, may not see this: it lacks the scope <code>{scope}</code>. Ask whoever
          runs the server for another one, or make one in a terminal:
          <br />
          <code>flywheel tokens create NAME --scope inference,{scope}</code>
        </p>
      )}
      <a href="/">To the playground</a>
    </section>
  );
}
