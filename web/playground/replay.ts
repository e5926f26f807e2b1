// Proof of replay: a reply is scored again under the step that wrote it, and the log-probabilities are compared bit for bit. A
// constrained reply has probabilities over legal tokens only, so its whole request runs again with the same seed.

import { compareBits, type ReplayResult } from "./bits.ts";
import type { Exchange } from "./reply.ts";
import { runChat } from "./run.ts";
import { score } from "./scoring.ts";

export async function replay(exchange: Exchange, index: number): Promise<ReplayResult> {
  const reply = exchange.replies[index]!;
  const { body, promptIds } = exchange;
  const isConstrained = body.response_format !== undefined || body.structured_outputs !== undefined;
  if (isConstrained && reply.branch === null) {
    const again = await runChat(body, () => {}, new AbortController().signal);
    if (again.error !== null) throw new Error(again.error.message);
    return compareBits(reply.tokens.list(), again.replies[index]!.tokens.list());
  }
  const model = exchange.model ?? String(body.model);
  return compareBits(reply.tokens.list(), await score(model, [...promptIds, ...reply.tokenIds], promptIds.length, 1));
}
