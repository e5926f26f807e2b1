// Reads a reply with tool calls in pieces, as they stream, and adds up what comes out.

import { expect } from "vitest";
import type { ToolCallFormat, ToolSignature } from "../../src/grammar/constraint.ts";
import { createReplyParser } from "../../src/text/create-reply-parser.ts";

/** A reply as its deltas add up. */
export interface TotalReply {
  content: string;
  calls: { name: string; arguments: string; id: string | undefined }[];
}

/** Of the tools that the replies call. */
export const signatures: ToolSignature[] = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string" },
        days: { type: "integer" },
        tags: { type: "array" },
        zip: { type: "string" },
        house: { anyOf: [{ type: "string" }, { type: "null" }] },
        floor: { type: ["string", "integer"] },
        unit: { enum: ["1", "2"] },
      },
    },
  },
];

/** What a reader of these pieces gets. */
export function totalReply(format: ToolCallFormat, pieces: readonly string[], forced = false): TotalReply {
  const parser = createReplyParser({ reasoning: null, tools: format, signatures, forced });
  const out: TotalReply = { content: "", calls: [] };
  for (const delta of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]) {
    if (delta.kind !== "tool_call") {
      expect(delta.text).not.toBe("");
      out.content += delta.text;
      continue;
    }
    if (delta.name !== undefined) {
      expect(delta.index).toBe(out.calls.length);
      out.calls.push({ name: delta.name, arguments: "", id: delta.id });
    }
    out.calls[delta.index]!.arguments += delta.argumentsText ?? "";
  }
  return out;
}
