import { expect, it } from "vitest";
import { gatherGroups } from "./rollouts.ts";

it("keeps attempts in order whichever comes first, and failed ones apart", async () => {
  const groups = await gatherGroups({
    scenarios: ["a", "b"],
    groupSize: 4,
    maxRetries: 0,
    async rollout(scenario, { index }) {
      await new Promise((resolve) => setTimeout(resolve, 10 * (4 - index)));
      if (scenario === "b" && index === 1) throw new RangeError("no luck");
      return { messages_and_choices: [{ role: "user", content: `${scenario}${index}` }], reward: index };
    },
  });
  const rewards = groups.map(({ trajectories }) => trajectories.map(({ reward }) => reward));
  expect(rewards).toEqual([
    [0, 1, 2, 3],
    [0, 2, 3],
  ]);
  expect(groups.map(({ exceptions }) => exceptions)).toEqual([[], [{ type: "RangeError", message: "no luck" }]]);
});
