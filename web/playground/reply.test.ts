import { describe, expect, it } from "vitest";
import {
  addContinuation,
  addEvent,
  asChoice,
  branchOff,
  isRunning,
  snapshot,
  speedOf,
  startExchange,
} from "./reply.ts";

const entry = (id: number, text: string) => ({
  token: `token_id:${id}`,
  logprob: -0.5,
  bytes: [...new TextEncoder().encode(text)],
});
const chunk = (index: number, text: string, id: number, more = {}) =>
  JSON.stringify({
    model: "agent@3",
    choices: [{ index, delta: { content: text }, logprobs: { content: [entry(id, text)] }, token_ids: [id], ...more }],
    usage: { prompt_tokens_details: { cached_tokens: 12 } },
  });
const opening = JSON.stringify({
  choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null }],
  prompt_token_ids: [1, 2, 3],
});

function streamed() {
  const exchange = startExchange({ n: 2 }, 1000);
  addEvent(exchange, opening, 1005);
  addEvent(exchange, chunk(0, "The", 7), 1010);
  addEvent(exchange, chunk(1, "A", 8), 1010);
  addEvent(exchange, chunk(0, " sea", 9, { finish_reason: "stop", policy_version: 3 }), 1510);
  addEvent(exchange, chunk(1, " lake", 10, { finish_reason: "length" }), 1510);
  return exchange;
}

describe("an exchange", () => {
  it("collects the choices of a stream", () => {
    const exchange = streamed();
    expect(isRunning(exchange)).toBe(true);
    addEvent(exchange, "[DONE]", 1511);
    expect(exchange).toMatchObject({ state: "done", model: "agent@3", promptIds: [1, 2, 3], cachedTokens: 12 });
    expect(exchange.replies.map(({ content, tokenIds, finish }) => [content, tokenIds, finish])).toEqual([
      ["The sea", [7, 9], "stop"],
      ["A lake", [8, 10], "length"],
    ]);
    expect(exchange.replies[0]!.tokens.list().map(({ text }) => text)).toEqual(["The", " sea"]);
    // each reply for itself: one token after the first, in half a second
    expect(exchange.replies.map((reply) => speedOf(exchange, reply))).toEqual([
      { firstTokenMs: 10, tokensPerSecond: 2 },
      { firstTokenMs: 10, tokensPerSecond: 2 },
    ]);
  });

  it("tells no speed of tokens that came all at once", () => {
    const exchange = startExchange({}, 0);
    for (const at of [200, 200.1, 200.3]) addEvent(exchange, chunk(0, "a", 1), at);
    expect(speedOf(exchange, exchange.replies[0]!)).toEqual({ firstTokenMs: 200, tokensPerSecond: null });
  });

  it("keeps what came before an error in the middle", () => {
    const exchange = streamed();
    addEvent(exchange, JSON.stringify({ error: { message: "The engine is gone.", code: 500 } }), 1600);
    expect(exchange).toMatchObject({ state: "failed", error: { message: "The engine is gone.", param: null } });
    expect(exchange.replies[0]!.content).toBe("The sea");
  });

  it("separates reasoning, and counts no speed before there is any", () => {
    const exchange = startExchange({}, 0);
    expect(speedOf(exchange, exchange.replies[0]!)).toEqual({ firstTokenMs: null, tokensPerSecond: null });
    addEvent(exchange, JSON.stringify({ choices: [{ index: 0, delta: { reasoning: "Hm." } }] }), 1);
    expect(exchange.replies[0]).toMatchObject({ reasoning: "Hm.", content: "" });
  });

  it("puts tool calls together from their pieces", () => {
    const exchange = startExchange({}, 0);
    const pieces = [
      { index: 0, id: "call-1", function: { name: "add", arguments: '{"a"' } },
      { index: 0, function: { arguments: ":1}" } },
    ];
    for (const piece of pieces) {
      addEvent(exchange, JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [piece] } }] }), 1);
    }
    expect(exchange.replies[0]!.toolCalls).toEqual([{ id: "call-1", name: "add", arguments: '{"a":1}' }]);
    expect(asChoice(exchange, 0).message).toMatchObject({
      tool_calls: [{ id: "call-1", type: "function", function: { name: "add", arguments: '{"a":1}' } }],
    });
  });

  it("gives a choice back as a reply without streaming has it", () => {
    expect(asChoice(streamed(), 0)).toEqual({
      index: 0,
      message: { role: "assistant", content: "The sea" },
      logprobs: { content: [entry(7, "The"), entry(9, " sea")].map((one) => ({ ...one, top_logprobs: [] })) },
      finish_reason: "stop",
      token_ids: [7, 9],
      prompt_token_ids: [1, 2, 3],
      policy_version: 3,
    });
  });

  it("branches off at a token", () => {
    const branch = branchOff(streamed().replies[0]!, 0, 1, entry(20, " ocean"), 20);
    expect(branch).toMatchObject({ content: "The ocean", tokenIds: [7, 20], branch: { of: 0, at: 1 }, finish: null });
    addContinuation(branch, JSON.stringify({ choices: [{ text: " is", token_ids: [21], finish_reason: "length" }] }));
    addContinuation(branch, "[DONE]");
    expect(branch).toMatchObject({ content: "The ocean is", tokenIds: [7, 20, 21], finish: "length" });
    expect(() => addContinuation(branch, JSON.stringify({ error: { message: "Gone." } }))).toThrow("Gone.");
  });

  it("has snapshots whose replies are new objects", () => {
    const exchange = streamed();
    const copy = snapshot(exchange);
    expect(copy).toEqual(exchange);
    expect(copy.replies[0]).not.toBe(exchange.replies[0]);
  });
});
