import { expect, it } from "vitest";
import { isSaid } from "./record-reader.ts";

const TRAJECTORY = JSON.stringify({
  reward: 1,
  metadata: { note: "hidden" },
  messages_and_choices: [
    { role: "user", content: [{ type: "text", text: "Name a FISH." }] },
    {
      finish_reason: "tool_calls",
      logprobs: { content: [{ token: "tok", logprob: -1 }] },
      message: {
        role: "assistant",
        content: null,
        reasoning_content: "Hmm, Größe",
        tool_calls: [{ id: "call_7", type: "function", function: { name: "look_up", arguments: '{"q":"pike"}' } }],
      },
    },
    { role: "tool", tool_call_id: "call_7", content: "a \\ pike\nin 東京" },
  ],
  additional_histories: [{ messages_and_choices: [{ role: "user", content: "second story" }] }],
});

it("finds what was said, in any case: turns, reasoning, calls, answers of tools, other histories", () => {
  for (const text of ["name a fish", "größe", "look_up", '"q":"pike"', "a \\ pike\nin 東京", "second story"]) {
    expect([text, isSaid(TRAJECTORY, text)]).toEqual([text, true]);
  }
  expect(isSaid(JSON.stringify({ messages: [{ role: "user", content: "An example" }] }), "example")).toBe(true);
});

it("does not find what nobody said", () => {
  for (const text of ["hidden", "tok", "assistant", "call_7", "content", "tool_calls", "function", "sea"]) {
    expect([text, isSaid(TRAJECTORY, text)]).toEqual([text, false]);
  }
  for (const json of ["null", "[]", "{}", '"fish"', '{"messages":"fish"}']) {
    expect(isSaid(json, "whale")).toBe(false);
  }
});

it("reads what is nested deeply", () => {
  const depth = 50_000;
  const deep = `{"messages":${"[".repeat(depth)}"bottom"${"]".repeat(depth)}}`;
  expect(isSaid(deep, "bottom")).toBe(true);
});
