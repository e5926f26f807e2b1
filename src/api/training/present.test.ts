import { expect, it } from "vitest";
import type { PreparedJob } from "../../training/data/prepare.ts";
import { previewJson } from "./present.ts";

function preparedJob(trajectories: number, tokens: number): PreparedJob {
  const sequence = {
    ids: new Array<number>(tokens).fill(12345),
    mask: new Array<0 | 1>(tokens).fill(1),
    oldLogprobs: [Number.NaN, ...new Array<number>(tokens - 1).fill(-0.123456789)],
  };
  const entries = Array.from({ length: trajectories }, (_, trajectory) => ({
    ...{ group: 0, trajectory, status: "trained" as const, reason: null, reward: 1, advantage: 1 },
    ...{ sequences: 1, tokens, trainableTokens: tokens },
  }));
  return { sequences: [], report: entries, tokenised: entries.map(() => [sequence]), groups: [], metrics: {} };
}

async function textOf(pieces: AsyncGenerator<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

it("writes a preview as one JSON object, with null for unknown log-probabilities", async () => {
  const preview = JSON.parse(await textOf(previewJson(preparedJob(2, 3), "m", 4)));
  expect(preview).toMatchObject({ object: "training_job.preview", model_id: "m", from_step: 4, metrics: {} });
  expect(preview.trajectories).toHaveLength(2);
  expect(preview.trajectories[1]).toMatchObject({
    trajectory: 1,
    tokens: [12345, 12345, 12345],
    sequences: [{ logprobs: [null, -0.123456789, -0.123456789] }],
  });
  expect(JSON.parse(await textOf(previewJson(preparedJob(0, 1), "m", 0))).trajectories).toEqual([]);
});

it("lets the event loop run while it writes a large preview", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await textOf(previewJson(preparedJob(500, 1000), "m", 0));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(4);
});
