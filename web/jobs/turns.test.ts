import { expect, it } from "vitest";
import { turnsOf } from "./turns.ts";

it("reads messages and choices, with calls, reasoning and content in parts", () => {
  const call = { id: "1", type: "function", function: { name: "add", arguments: '{"a":1}' } };
  const plain = { reasoning: "", calls: [], isChoice: false };
  expect(
    turnsOf([
      { role: "user", content: [{ type: "text", text: "1 + 1?" }, { type: "image" }] },
      { finish_reason: "stop", message: { role: "assistant", content: null, reasoning: "Hm.", tool_calls: [call] } },
      { role: "tool", content: "2" },
    ]),
  ).toEqual([
    { ...plain, role: "user", text: '1 + 1?\n{"type":"image"}' },
    { role: "assistant", text: "", reasoning: "Hm.", calls: [{ name: "add", arguments: '{"a":1}' }], isChoice: true },
    { ...plain, role: "tool", text: "2" },
  ]);
});
