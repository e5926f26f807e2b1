// Goes on from an alternative at a token.
import { messageOf } from "../session.ts";
import { branchOff, type Exchange, type Reply, snapshot } from "./reply.ts";
import { continuationBody } from "./request.ts";
import { runContinuation } from "./run.ts";
import { stop, work } from "./running.ts";
import { score } from "./scoring.ts";
import { chat, problem, put, settings } from "./state.ts";
import { TokenList } from "./token-list.ts";
import type { Alternative, WireEntry } from "./tokens.ts";
import type { Answers, TurnId } from "./tree.ts";

/** Goes on from a token's alternative, as a new reply beside the others. */
export async function continueFrom(turn: TurnId, of: number, at: number, alternative: Alternative): Promise<void> {
  await stop();
  const { exchange } = chat.value.turns.get(turn) as Answers;
  const model = exchange.model ?? exchange.body.model;
  const entry: WireEntry = {
    token: `token_id:${alternative.id}`,
    logprob: alternative.logprob,
    bytes: [...alternative.bytes],
    top_logprobs: exchange.replies[of]!.tokens.entry(at).top_logprobs,
  };
  const branch = branchOff(exchange.replies[of]!, of, at, entry, alternative.id);
  const live: Exchange = { ...exchange, replies: [...exchange.replies, branch], state: "streaming" };
  const show = () => put(turn, snapshot(live), false);
  show();
  const prompt = [...exchange.promptIds];
  const body = continuationBody({ ...exchange.body, model }, [...prompt, ...branch.tokenIds], branch.tokenIds.length);
  await work(async (signal) => {
    try {
      await runContinuation(body, branch, show, signal);
      await addScores(branch, String(model), prompt, signal);
    } catch (error) {
      if (!signal.aborted) problem.value = messageOf(error);
    }
    live.state = exchange.state;
    put(turn, snapshot(live), true);
  });
}

/** A continuation comes without log-probabilities that have bytes: its text is scored when it is there. */
async function addScores(branch: Reply, model: string, prompt: readonly number[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const top = Math.max(1, settings.value.alternatives);
  branch.tokens = TokenList.of(await score(model, [...prompt, ...branch.tokenIds], prompt.length, top, signal));
}
