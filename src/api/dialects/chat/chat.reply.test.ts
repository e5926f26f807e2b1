import { expect, test } from "vitest";
import { ByteTokenizer } from "../../../../test/support/byte-tokenizer.ts";
import type { ChoiceDelta } from "../../generation/choice-output.ts";
import type { ReplyFacts, WireTokenLogprob } from "../../generation/reply.ts";
import type { ChatReplyOptions } from "./chat.prepare.ts";
import { ChatReply } from "./chat.reply.ts";

const facts: ReplyFacts = {
  id: "chatcmpl-1",
  created: 1,
  model: "m",
  systemFingerprint: "f",
  promptTokens: 2,
  includeUsage: false,
  continuousUsage: false,
  promptTokensDetails: false,
  reasoningParsed: false,
};
const options: ChatReplyOptions = {
  promptTokenIds: [5, 6],
  role: "assistant",
  echo: "",
  parses: false,
  includeReasoning: true,
  reasoningAlias: false,
  hideDetails: false,
  parallelToolCalls: true,
  namedTool: false,
  policyVersion: null,
  returnTokenIds: true,
  logprobs: true,
};

const entry = (token: string): WireTokenLogprob => {
  const own = { token, logprob: -0.5, bytes: [1, 2] };
  return { ...own, top_logprobs: [own, { token: '"\n🙂', logprob: -9999, bytes: [] }] };
};

function delta(index: number, tokens: readonly string[], last = false): ChoiceDelta {
  return {
    type: "delta",
    index,
    parts: tokens.map((text) => ({ kind: "content", text })),
    tokenIds: tokens.map((_, i) => i),
    logprobs: tokens.map(entry),
    reasoningTokens: 0,
    hasThought: false,
    end: last ? { reason: "length", stopReason: null } : null,
    stopEngine: false,
  };
}

/** The first choice takes several outputs, the second one makes no token at all. */
async function reply(changes: Partial<ChatReplyOptions> = {}) {
  const collector = new ChatReply(facts, { ...options, ...changes }, 2);
  collector.accept(0, delta(0, ["a", '"b"']));
  collector.accept(0, delta(1, [], true));
  collector.accept(0, delta(0, []));
  collector.accept(0, delta(0, ["ü"], true));
  return JSON.parse(await collector.toJson(new ByteTokenizer()));
}

test("returns the log probabilities of every output in order, per choice", async () => {
  const { choices, usage } = await reply();
  expect(choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1]);
  expect(choices[0].message.content).toBe('a"b"ü');
  expect(choices[0].logprobs).toEqual({ content: ["a", '"b"', "ü"].map(entry) });
  expect(choices[0].token_ids).toEqual([0, 1, 0]);
  expect(choices[1].logprobs).toEqual({ content: [] });
  expect(usage.completion_tokens).toBe(3);
});

test("omits log probabilities when not requested or when details are hidden", async () => {
  const hidden = (await reply({ hideDetails: true })).choices[0];
  expect([hidden.logprobs, hidden.token_ids]).toEqual([null, null]);
  expect((await reply({ logprobs: false })).choices[0].logprobs).toBeNull();
});

test("an empty thought makes empty content null, even if more output follows the end", async () => {
  const collector = new ChatReply(facts, options, 1);
  collector.accept(0, { ...delta(0, [], true), hasThought: true });
  collector.accept(0, delta(0, []));
  expect(JSON.parse(await collector.toJson(new ByteTokenizer())).choices[0].message.content).toBeNull();
});
