// PPO's clipped surrogate: -min(r * A, clip(r) * A). A token whose ratio is already past the clip in the direction of
// its advantage has no gradient.

import type { Algorithm } from "./contract.ts";

export const ppo: Algorithm = {
  name: "ppo",
  defaultEpsilon: 0.2,
  defaultEpsilonHigh: null,
  tokenLoss({ ratio, advantage, clipLow, clipHigh }) {
    const clipped = Math.min(Math.max(ratio, clipLow), clipHigh);
    if (ratio * advantage <= clipped * advantage) return { loss: -ratio * advantage, dRatio: -advantage, dLogprob: 0 };
    return { loss: -clipped * advantage, dRatio: 0, dLogprob: 0 };
  },
};
