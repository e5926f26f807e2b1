// A rollout as a conversation: roles, reasoning folded away, tool calls.
import { useEffect, useRef } from "preact/hooks";
import { Marked } from "../parts/marked.tsx";
import { turnsOf } from "./turns.ts";

export interface ConversationProps {
  items: readonly Record<string, unknown>[];
  /** What somebody looks for; it is marked, and the first place is brought into view. */
  wanted: string;
}

export function Conversation({ items, wanted }: ConversationProps) {
  const list = useRef<HTMLOListElement>(null);
  const has = (text: string) => wanted !== "" && text.toLowerCase().includes(wanted.toLowerCase());
  useEffect(() => {
    list.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [items, wanted]);
  return (
    <ol class="turns" ref={list}>
      {turnsOf(items).map(({ role, text, reasoning, calls, isChoice }, i) => (
        <li key={i} class={isChoice ? "own" : undefined}>
          <b>{role}</b>
          <div>
            {reasoning !== "" && (
              <details open={has(reasoning)}>
                <summary>Reasoning</summary>
                <p class="muted">
                  <Marked text={reasoning} wanted={wanted} />
                </p>
              </details>
            )}
            <Marked text={text} wanted={wanted} />
            {calls.map((call, k) => (
              <code key={k}>
                <Marked text={`${call.name}(${call.arguments})`} wanted={wanted} />
              </code>
            ))}
          </div>
        </li>
      ))}
    </ol>
  );
}
