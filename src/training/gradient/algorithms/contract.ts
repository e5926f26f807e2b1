// A policy-gradient algorithm: the loss of one token, given its importance ratio and advantage. The steps around it
// (ratio level, cap, mask, tau, KL, truncated importance sampling, weights) are in ../loss.ts. To add an algorithm,
// export one from a new file here, add it to registry.ts and give it a table test.

export interface TokenTerms {
  /** Importance ratio after level, cap and mask. */
  ratio: number;
  /** Advantage after tau and KL penalty. */
  advantage: number;
  /** Log-probability under the current weights. */
  logprob: number;
  clipLow: number;
  clipHigh: number;
}

export interface TokenLoss {
  loss: number;
  /** Derivative through the ratio. */
  dRatio: number;
  /** Derivative directly through the log-probability. */
  dLogprob: number;
}

export interface Algorithm {
  readonly name: string;
  readonly defaultEpsilon: number;
  /** null = the same as epsilon. */
  readonly defaultEpsilonHigh: number | null;
  tokenLoss(terms: TokenTerms): TokenLoss;
}
