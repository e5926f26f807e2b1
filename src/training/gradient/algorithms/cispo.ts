// CISPO: REINFORCE with a clipped importance weight that counts as a constant. Every token keeps its gradient; the clip
// only limits its weight. Loss: -clip(r) * A * logprob. Gradient: -clip(r) * A.

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
