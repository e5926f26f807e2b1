// The turns of a conversation, from messages and choices as they were sent.

export interface Turn {
  role: string;
  text: string;
  reasoning: string;
  calls: { name: string; arguments: string }[];
  /** The policy said it. */
  isChoice: boolean;
}

type Loose = Record<string, unknown>;

export function turnsOf(items: readonly Loose[]): Turn[] {
  return items.map((item) => {
    const isChoice = isObject(item.message);
    const message = isObject(item.message) ? item.message : item;
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : [];
    return {
      role: String(message.role ?? "assistant"),
      text: textOf(message.content),
      reasoning: textOf(message.reasoning ?? message.reasoning_content),
      calls: calls.map((call) => {
        const { name, arguments: given } = isObject(call.function) ? call.function : call;
        return { name: String(name), arguments: typeof given === "string" ? given : JSON.stringify(given ?? {}) };
      }),
      isChoice,
    };
  });
}

/** Content is text, or parts of which some have text. */
function textOf(content: unknown): string {
  if (content == null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(content);
  return content
    .map((part) => (isObject(part) && typeof part.text === "string" ? part.text : JSON.stringify(part)))
    .join("\n");
}

/** Everything that the policy said, turn by turn. */
export function saidBy(turns: readonly Turn[]): string {
  const own = turns.filter(({ isChoice }) => isChoice);
  return own
    .map(({ text, reasoning, calls }) =>
      [reasoning, text, ...calls.map(({ name, arguments: given }) => `${name}(${given})`)]
        .filter((part) => part !== "")
        .join("\n"),
    )
    .join("\n\n");
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
