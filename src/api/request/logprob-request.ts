// Limits on log probabilities: per token (--max-logprobs) and per reply.
import { ServiceError } from "../../errors/service-error.ts";

/** A `count` of -1 asks for the whole vocabulary. `param` is the field that the error names. */
export function checkLogprobCount(count: number | null, cap: number, vocabSize: number, param: string): void {
  if (count === null || cap === -1) return;
  const wanted = count === -1 ? vocabSize : count;
  if (wanted > cap) {
    const message = `${wanted} log probabilities per token were requested; this server gives at most ${cap} (--max-logprobs).`;
    throw new ServiceError("invalid_value", message, { param });
  }
}

/** Limit for a reply that is not streamed: about 200 MB of text. Streams do not collect log probabilities. */
export const MOST_IN_A_REPLY = 2_000_000;

/** Of one log probability in a reply, as JSON. Tokens of more than a few bytes take more. */
export const LOGPROB_BYTES = 100;

export interface LogprobAmount {
  choices: number;
  /** Per choice. */
  maxTokens: number;
  promptTokens: number;
  /** Per token, besides the token itself; null = none, -1 = the whole vocabulary. */
  top: number | null;
  prompt: number | null;
}

/** The most log probabilities that a prompt and its choices can produce. */
export function logprobAmount(of: LogprobAmount, vocabSize: number): number {
  const perToken = (count: number | null) => (count === null ? 0 : 1 + (count === -1 ? vocabSize : count));
  return of.choices * of.maxTokens * perToken(of.top) + of.promptTokens * perToken(of.prompt);
}

/** Refuses a reply that would be too large to build, before computing it. */
export function checkLogprobAmount(amount: number, param: string): void {
  if (amount > MOST_IN_A_REPLY) {
    const message =
      `The reply could hold ${amount} log probabilities, more than the ${MOST_IN_A_REPLY} that one may: ` +
      "ask for fewer choices, tokens or log probabilities, or for a stream.";
    throw new ServiceError("invalid_value", message, { param });
  }
}
