// Items as they are kept: the fields that this server knows, and nothing else that a client sends with them.
import { isJsonObject } from "../../json/json.ts";
import { type Item, TEXT_PARTS } from "./items.ts";

/** Longer ids are replaced. OpenAI's have at most 64 characters. */
export const LONGEST_ID = 128;

const STATUSES = new Set<unknown>(["in_progress", "completed", "incomplete"]);

/** `item`: one that a conversation has accepted. */
export function knownFields({ id, type, ...item }: Item): Item {
  const common = { id, type, ...(STATUSES.has(item.status) ? { status: item.status } : {}) };
  switch (type) {
    case "function_call":
      return { ...common, call_id: item.call_id, name: item.name, arguments: item.arguments };
    case "custom_tool_call":
      return { ...common, call_id: item.call_id, name: item.name, input: item.input };
    case "function_call_output":
    case "custom_tool_call_output":
      return { ...common, call_id: item.call_id, output: knownParts(item.output) };
    case "reasoning":
      return {
        ...common,
        summary: knownParts(item.summary ?? []),
        content: knownParts(item.content ?? []),
        encrypted_content: null,
      };
    default:
      return { ...common, role: item.role, content: knownParts(item.content) };
  }
}

function knownParts(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.filter(isJsonObject).map((part) => {
    const field = TEXT_PARTS.get(String(part.type))!;
    return { type: part.type, [field]: part[field], ...(part.type === "output_text" ? { annotations: [] } : {}) };
  });
}
