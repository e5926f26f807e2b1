// CISPO: REINFORCE with a clipped, detached importance weight. Every token keeps a gradient; the clip only bounds how
// much it counts. Loss -clip(r) * A * logprob, gradient -clip(r) * A.

import type { Algorithm } from "./contract.ts";

export const cispo: Algorithm = {
  name: "cispo",
  defaultEpsilon: 1,
  defaultEpsilonHigh: 4,
  tokenLoss({ ratio, advantage, logprob, clipLow, clipHigh }) {
    const weight = Math.min(Math.max(ratio, clipLow), clipHigh);
    return { loss: -weight * advantage * logprob, dRatio: 0, dLogprob: -weight * advantage };
  },
};
