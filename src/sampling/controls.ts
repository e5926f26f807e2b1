// Which of a request's controls forbid tokens, for errors about requests that leave none.
import type { SamplingParams } from "./sampling-params.ts";

/** The controls that forbid tokens at an output position, by their names in a request. */
export function forbiddingControls(
  { allowedTokenIds, badWords, minTokens }: SamplingParams,
  position: number,
  isConstrained: boolean,
): string[] {
  return [
    isConstrained ? "the structured-output constraint" : "",
    allowedTokenIds === null ? "" : "allowed_token_ids",
    badWords.length === 0 ? "" : "bad_words",
    position < minTokens ? "min_tokens" : "",
  ].filter((name) => name !== "");
}

/** No token may come first, whatever the model says and a constraint allows. */
export function leavesNoFirstToken({ allowedTokenIds, badWords, minTokens, minTokensMask }: SamplingParams): boolean {
  if (allowedTokenIds === null) return false;
  const forbidden = new Set(badWords.filter((word) => word.length === 1).map((word) => word[0]!));
  if (minTokens > 0) for (const id of minTokensMask) forbidden.add(id);
  return allowedTokenIds.every((id) => forbidden.has(id));
}
