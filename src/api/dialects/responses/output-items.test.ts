import { expect, it } from "vitest";
import type { WireTokenLogprob } from "../../generation/reply.ts";
import { OutputItems } from "./output-items.ts";

/** `spells`: what the token adds to the bytes; `token`: the text that it completes. */
function entry(token: string, spells = token): WireTokenLogprob {
  return { token, logprob: -1, bytes: [...Buffer.from(spells)], top_logprobs: [] };
}

function output() {
  const events: { delta: string; tokens: string[] }[] = [];
  const items = new OutputItems({ key: "k", logprobs: true, parallelToolCalls: true }, (type, fields) => {
    if (type !== "response.output_text.delta") return;
    const { delta, logprobs } = fields as { delta: string; logprobs: WireTokenLogprob[] };
    events.push({ delta, tokens: logprobs.map(({ token }) => token) });
  });
  return { items, events };
}

const content = (text: string) => ({ kind: "content", text }) as const;

it("gives every token of a character of several tokens its place beside the text, from the first on", () => {
  const { items, events } = output();
  for (const [token, text] of [
    ["", ""],
    ["", ""],
    ["€", "€"],
    ["a", "a"],
    ["", ""],
    ["é", "é"],
  ] as const) {
    items.hold([entry(token)]);
    if (text !== "") items.add(content(text));
    items.flush();
  }
  items.hold([entry("</s>")]);
  items.end("completed");
  expect(events).toEqual([
    { delta: "€", tokens: ["", "", "€"] },
    { delta: "a", tokens: ["a"] },
    { delta: "é", tokens: ["", "é"] },
    { delta: "", tokens: ["</s>"] },
  ]);
  expect(items.items).toMatchObject([{ type: "message", content: [{ logprobs: { length: 7 } }] }]);
});

it("waits with the tokens of text that a parser holds back, and leaves out markers and calls", () => {
  const { items, events } = output();
  items.add({ kind: "reasoning", text: "hm" });
  items.hold([entry("</think>"), entry("\n\n"), entry("a <")]);
  items.add(content("a "));
  items.flush();
  items.hold([entry("b>")]);
  items.add(content("<b>"));
  items.flush();
  items.hold([entry("<tool_call>")]);
  items.add({ kind: "tool_call", index: 0, name: "f", argumentsText: "{}" });
  items.end("completed");
  expect(events).toEqual([
    { delta: "a ", tokens: ["a <"] },
    { delta: "<b>", tokens: ["b>"] },
  ]);
});
