// Finds a text in what was said in a trajectory or an example.

import { isJsonObject } from "../../json/json.ts";

/** Where messages are: those of a trajectory, its other histories, and those of an example. */
const HISTORIES = ["messages_and_choices", "additional_histories", "messages"];

/** Fields of messages and choices that nobody said. Tokens are in `logprobs` a second time. */
const UNSAID = new Set(["logprobs", "role", "id", "tool_call_id", "type", "object", "finish_reason"]);

/** `json`: as it was sent. `wanted`: in lower case. */
export function isSaid(json: string, wanted: string): boolean {
  const sent: unknown = JSON.parse(json);
  // A list instead of recursion: what was sent may be nested deeply.
  const open: unknown[] = isJsonObject(sent) ? HISTORIES.map((name) => sent[name]) : [];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") {
      if (value.toLowerCase().includes(wanted)) return true;
    } else if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (isJsonObject(value)) {
      for (const [name, field] of Object.entries(value)) if (!UNSAID.has(name)) open.push(field);
    }
  }
  return false;
}
