// How many log probabilities a request asks for, checked against the server's cap (--max-logprobs).
import { ServiceError } from "../../errors/service-error.ts";

/** `param`: what the error names. -1 asks for the whole vocabulary. */
export function checkLogprobCount(count: number | null, cap: number, vocabSize: number, param: string): void {
  if (count === null || cap === -1) return;
  const wanted = count === -1 ? vocabSize : count;
  if (wanted > cap) {
    const message = `${wanted} log probabilities per token were requested; this server gives at most ${cap} (--max-logprobs).`;
    throw new ServiceError("invalid_value", message, { param });
  }
}

/** The most log probabilities in one whole reply: some 200 MB of text. A stream does not collect them. */
const MOST_IN_A_REPLY = 2_000_000;

export interface LogprobAmount {
  choices: number;
  /** Per choice. */
  maxTokens: number;
  promptTokens: number;
  /** Beside the token itself; null = none, -1 = the whole vocabulary. */
  top: number | null;
  prompt: number | null;
}

/** How many log probabilities a prompt and its choices can come to. */
export function logprobAmount(of: LogprobAmount, vocabSize: number): number {
  const perToken = (count: number | null) => (count === null ? 0 : 1 + (count === -1 ? vocabSize : count));
  return of.choices * of.maxTokens * perToken(of.top) + of.promptTokens * perToken(of.prompt);
}

/** A reply that would be too large to put together is refused before it is computed. */
export function checkLogprobAmount(amount: number, param: string): void {
  if (amount > MOST_IN_A_REPLY) {
    const message =
      `The reply could hold ${amount} log probabilities, more than the ${MOST_IN_A_REPLY} that one may: ` +
      "ask for fewer choices, tokens or log probabilities, or for a stream.";
    throw new ServiceError("invalid_value", message, { param });
  }
}
