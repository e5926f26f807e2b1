// How many log probabilities a request asks for, checked against the server's cap (--max-logprobs).
import { ServiceError } from "../../errors.ts";

/** `param`: what the error names. -1 asks for the whole vocabulary. */
export function checkLogprobCount(count: number | null, cap: number, vocabSize: number, param: string): void {
  if (count === null || cap === -1) {
    return;
  }
  const wanted = count === -1 ? vocabSize : count;
  if (wanted > cap) {
    const message = `${wanted} log probabilities per token were requested; this server gives at most ${cap} (--max-logprobs).`;
    throw new ServiceError("invalid_value", message, { param });
  }
}
