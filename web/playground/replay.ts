// Proof of replay: a reply is scored again under the step that wrote it, and the log-probabilities are compared bit for bit. A
// constrained reply has probabilities over legal tokens only, so its whole request runs again with the same seed.

import type { Exchange } from "./reply.ts";
import { runChat } from "./run.ts";
import { score } from "./scoring.ts";
import type { Token } from "./tokens.ts";

export interface ReplayResult {
  same: number;
  total: number;
  /** The first token that is not the same; null if all are. */
  firstDifference: { at: number; sampled: number; again: number | null } | null;
}

export function compareBits(
  sampled: readonly Pick<Token, "id" | "logprob">[],
  again: readonly Pick<Token, "id" | "logprob">[],
): ReplayResult {
  const isSame = (i: number) => sampled[i]!.id === again[i]?.id && Object.is(sampled[i]!.logprob, again[i]?.logprob);
  const differing = sampled.findIndex((_token, i) => !isSame(i));
  const same = sampled.filter((_token, i) => isSame(i)).length;
  if (differing < 0) return { same, total: sampled.length, firstDifference: null };
  const { logprob } = sampled[differing]!;
  const first = { at: differing, sampled: logprob, again: again[differing]?.logprob ?? null };
  return { same, total: sampled.length, firstDifference: first };
}

export async function replay(exchange: Exchange, index: number): Promise<ReplayResult> {
  const reply = exchange.replies[index]!;
  const { body, promptIds } = exchange;
  const isConstrained = body.response_format !== undefined || body.structured_outputs !== undefined;
  if (isConstrained && reply.branch === null) {
    const again = await runChat(body, () => {}, new AbortController().signal);
    if (again.error !== null) throw new Error(again.error.message);
    return compareBits(reply.tokens, again.replies[index]!.tokens);
  }
  const model = exchange.model ?? String(body.model);
  return compareBits(reply.tokens, await score(model, [...promptIds, ...reply.tokenIds], promptIds.length, 1));
}
