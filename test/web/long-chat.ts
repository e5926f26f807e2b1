// A chat of many turns, as a file of the page has it: for the test and the measurement of writing in one.
import { toFile } from "../../web/playground/chat-file.ts";
import type { Kept } from "../../web/playground/chat-record.ts";
import type { Message } from "../../web/playground/message.ts";
import { emptyReply, startExchange } from "../../web/playground/reply.ts";
import { DEFAULTS } from "../../web/playground/settings.ts";
import { TokenList } from "../../web/playground/token-list.ts";
import type { Place, Turn } from "../../web/playground/tree.ts";

export const MOST_TURNS = 200;
/** 100,000 tokens in all. */
const TOKENS_PER_TURN = 500;

export function longChat(turnCount: number, model: string): string {
  const turns = new Map<string, Turn>();
  const picks: Record<string, string> = {};
  const said: Message[] = [];
  let after: Place | null = null;
  for (let i = 0; i < turnCount; i++) {
    const question: Message = { role: "user", content: `Question ${i}` };
    said.push(question);
    const tokens = new TokenList();
    const alternatives = (at: number) =>
      Array.from({ length: 5 }, (_, j) => ({
        token: `token_id:${(at * 7 + j) % 900}`,
        logprob: -1 - j,
        bytes: [97 + j, 32],
      }));
    for (let at = 0; at < TOKENS_PER_TURN; at++) {
      tokens.add({ token: `token_id:${at % 900}`, logprob: -0.5, bytes: [98, 32], top_logprobs: alternatives(at) });
    }
    const content = `**Answer ${i}**\n\n${"b ".repeat(TOKENS_PER_TURN)}`;
    const reply = { ...emptyReply(), content, tokens, tokenIds: Array<number>(TOKENS_PER_TURN).fill(98) };
    const exchange = { ...startExchange({ model, messages: [...said] }, 0), replies: [reply] };
    turns.set(`q${i}`, { kind: "question", id: `q${i}`, after, messages: [question] });
    const sent = { output: "text", constraint: "" } as const;
    turns.set(`a${i}`, { kind: "answers", id: `a${i}`, to: `q${i}`, sent, exchange: { ...exchange, state: "done" } });
    picks[after === null ? "" : `${after.turn}:0`] = `q${i}`;
    picks[`q${i}`] = `a${i}:0`;
    after = { turn: `a${i}`, reply: 0 };
    said.push({ role: "assistant", content });
  }
  const chat = { id: "c", title: null, at: 0, turns, columns: [{ picks }], startsAt: null };
  const kept: Kept = { chat, settings: { ...DEFAULTS, models: [model] }, draft: "", deleted: [] };
  return toFile(kept);
}
