// What the sampler reports about one chosen token.

/** A token with its alternatives. Log-probabilities are natural, of the raw (grammar-masked) distribution. */
export interface TokenLogprobs {
  logprob: number;
  /** 1 = most likely: the number of entries with logprob >= this one. null: the engine does not say. */
  rank: number | null;
  /** The k most likely, best first, or the ids that were asked for: ids and their log-probabilities. */
  topIds: readonly number[];
  topLogprobs: readonly number[];
}

/** How a token of a prompt, and what the model would have liked in its place, relate to a set of tokens that were legal. */
export interface Preference {
  logprob: number;
  /** Probability of all legal tokens together. */
  legalMass: number;
  /** null = there is none. */
  likeliestLegal: LikelyToken | null;
  likeliestIllegal: LikelyToken | null;
}

export interface LikelyToken {
  id: number;
  logprob: number;
}

export interface SampledToken {
  id: number;
  /** null when the request asked for none. */
  logprobs: TokenLogprobs | null;
}
