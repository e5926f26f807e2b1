import { expect, it } from "vitest";
import { Conversation, knownFields } from "./items.ts";

const junk = { junk: "x".repeat(1000), annotations: [{ type: "file" }], logprobs: [{}] };

it.each([
  [{ type: "message", role: "user", content: "hi" }, {}],
  [{ type: "message", role: "assistant", status: "completed", content: [{ type: "refusal", refusal: "no" }] }, {}],
  [{ type: "message", role: "user", content: [{ type: "input_text", text: "a" }] }, {}],
  [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "a", annotations: [] }] }, {}],
  [{ type: "function_call", call_id: "c", name: "f", arguments: "{}" }, {}],
  [{ type: "custom_tool_call", call_id: "c", name: "f", input: "x" }, {}],
  [{ type: "custom_tool_call_output", call_id: "c", output: "4" }, {}],
  [{ type: "function_call_output", call_id: "c", output: [{ type: "text", text: "4" }] }, {}],
  [
    { type: "reasoning", summary: [{ type: "summary_text", text: "s" }] },
    { content: [], encrypted_content: null },
  ],
  [
    { type: "reasoning", content: [{ type: "reasoning_text", text: "s" }] },
    { summary: [], encrypted_content: null },
  ],
])("keeps what it knows of %j, and nothing else", (known, added) => {
  const withJunk = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((part: object) => ({ ...junk, ...part })) : value;
  const sent = {
    ...Object.fromEntries(Object.entries(known).map(([name, value]) => [name, withJunk(value)])),
    ...{ id: "i", type: known.type, junk: junk.junk },
  };
  expect(knownFields(sent)).toEqual({ id: "i", ...known, ...added });
  // it says the same to the model
  const [before, after] = [new Conversation(true), new Conversation(true)];
  before.add(sent, "input.0");
  after.add(knownFields(sent), "input.0");
  expect(after.messages).toEqual(before.messages);
});

it("leaves out a status that is none", () => {
  const status = "x".repeat(1000);
  expect(knownFields({ id: "i", type: "message", role: "user", content: "", status })).not.toHaveProperty("status");
});
