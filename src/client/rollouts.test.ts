import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { gatherGroups } from "./rollouts.ts";

describe("gatherGroups", () => {
  it("groups by scenario, bounds concurrency, retries and counts failures", async () => {
    let running = 0;
    let most = 0;
    const tries = new Map<string, number>();
    const reports: number[] = [];
    const groups = await gatherGroups({
      scenarios: ["good", "flaky", "bad"],
      groupSize: 4,
      concurrency: 3,
      maxRetries: 1,
      onProgress: ({ done }) => reports.push(done),
      async rollout(scenario, { index }) {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 1));
        running--;
        const key = `${scenario}${index}`;
        tries.set(key, (tries.get(key) ?? 0) + 1);
        if (scenario === "bad" || (scenario === "flaky" && tries.get(key) === 1)) throw new RangeError("oops");
        return { messages_and_choices: [], reward: index };
      },
    });
    expect(groups.map(({ trajectories, exceptions }) => [trajectories.length, exceptions!.length])).toEqual([
      [4, 0],
      [4, 0],
      [0, 4],
    ]);
    expect(groups[2]!.exceptions![0]).toEqual({ type: "RangeError", message: "oops" });
    expect(most).toBeLessThanOrEqual(3);
    expect(reports.at(-1)).toBe(12);
  });

  it("stops when its signal aborts", async () => {
    const stop = new AbortController();
    const gathering = gatherGroups({
      scenarios: [1, 2, 3],
      groupSize: 1,
      concurrency: 1,
      signal: stop.signal,
      async rollout() {
        stop.abort(new Error("enough"));
        return { messages_and_choices: [], reward: 0 };
      },
    });
    await expect(gathering).rejects.toThrow("enough");
  });

  it("gives every attempt its own signal, so that listeners do not pile up", async () => {
    const stop = new AbortController();
    const signals = new Set<AbortSignal>();
    let heard = 0;
    const gathering = gatherGroups({
      scenarios: [1],
      groupSize: 24,
      concurrency: 24,
      signal: stop.signal,
      async rollout(_, { signal }) {
        signals.add(signal);
        signal.addEventListener("abort", () => heard++);
        await new Promise((resolve) => setTimeout(resolve, 1));
        if (signals.size === 24) stop.abort(new Error("enough"));
        return { messages_and_choices: [], reward: 0 };
      },
    });
    await gathering;
    expect(signals.size).toBe(24);
    expect(heard).toBe(24);
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  it("keeps attempts in order and lists failed ones separately", async () => {
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
});
