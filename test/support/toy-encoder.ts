// A word tokenizer with a ChatML-like template, for tests of tokenising: `<s> role NL content <e> NL` per message. The
// "think" role makes the template close an empty thought after the generation prompt, as some models' templates do. The
// "alien" role is refused.

import { PromptError } from "../../src/text/prompt-error.ts";
import type { ChatEncoder, History, SampledChoice } from "../../src/training/data/trajectory.ts";

const WORDS = "<e> <s> NL user assistant think <think> </think> q1 q2 a1 a2 a3 yes no maybe".split(" ");

type Messages = Parameters<ChatEncoder["encodeConversation"]>[0];
type Tools = Parameters<ChatEncoder["encodeConversation"]>[1];

/** Answers at once. */
interface ToyEncoder extends ChatEncoder {
  encodePrompt(messages: Messages, tools: Tools, maxTokens: number): number[];
  encodeConversation(messages: Messages, tools: Tools): number[];
  encodeText(text: string): number[];
  word(id: number): string;
}

export const toyEncoder: ToyEncoder = {
  vocabSize: WORDS.length,
  eosTokenId: 0,
  word: (id) => WORDS[id]!,
  idOf(token, bytes) {
    const id = WORDS.indexOf(bytes?.length ? Buffer.from(bytes).toString() : token);
    return id < 0 ? null : id;
  },
  encodeText: toyIds,
  literal: (text) => text,
  tokenTexts: (ids) => ids.map((id) => WORDS[id]!),
  encodePrompt(messages, tools) {
    const empty = messages.some(({ role }) => role === "think") ? "<think> NL </think> NL" : "";
    return [...toyEncoder.encodeConversation(messages, tools), ...toyIds(`<s> assistant NL ${empty}`)];
  },
  encodeConversation(messages, tools) {
    const alien = messages.findIndex(({ role }) => role === "alien");
    if (alien >= 0) throw new PromptError("invalid_message", `messages.${alien}.role`, "There are no aliens.");
    const names = (tools ?? []).map((tool) => tool.function.name).join(" ");
    return messages.flatMap(({ role, texts }, i) =>
      toyIds(`<s> ${role} NL ${i === 0 ? names : ""} ${texts.join(" ")} <e> NL`),
    );
  },
};

/** Ids of words. Throws on unknown words. */
export function toyIds(text: string): number[] {
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const id = WORDS.indexOf(word);
      if (id < 0) throw new Error(`the toy vocabulary has no "${word}"`);
      return id;
    });
}

/** One question and its sampled reply, with ids and log-probabilities. */
export function toyHistory(reply: string, fields: Partial<SampledChoice> = {}): History {
  const tokenIds = toyIds(reply);
  const message = { role: "assistant", texts: [reply] };
  const choice = { message, promptTokenIds: null, tokenIds, logprobs: tokenIds.map(() => -1), tokens: null, ...fields };
  return { tools: null, items: [{ message: { role: "user", texts: ["q1"] } }, { choice }] };
}
