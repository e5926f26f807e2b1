// A try as a conversation: roles, reasoning folded away, tool calls.
import { turnsOf } from "./turns.ts";

export function Conversation({ items }: { items: readonly Record<string, unknown>[] }) {
  return (
    <ol class="turns">
      {turnsOf(items).map(({ role, text, reasoning, calls, isChoice }, i) => (
        <li key={i} class={isChoice ? "own" : undefined}>
          <b>{role}</b>
          <div>
            {reasoning !== "" && (
              <details>
                <summary>Reasoning</summary>
                <p class="muted">{reasoning}</p>
              </details>
            )}
            {text}
            {calls.map((call, k) => (
              <code key={k}>
                {call.name}({call.arguments})
              </code>
            ))}
          </div>
        </li>
      ))}
    </ol>
  );
}
