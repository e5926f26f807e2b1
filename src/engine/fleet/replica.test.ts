// Embedded engines in threads as replicas of a fleet.
import { afterAll, afterEach, expect, it } from "vitest";
import { compileFakes } from "../../../test/support/compile-fakes.ts";
import { finishOf, generateRequest, tokensOf } from "../../../test/support/requests.ts";
import { outputsOf, startFleet } from "../../../test/support/start-fleet.ts";
import { EXIT_TOKEN, type WorkerModelOptions } from "../../../test/support/worker-model.ts";
import { WorkerEngine } from "../thread/worker-host.ts";
import type { FleetEngine } from "./fleet-engine.ts";
import { LocalReplica } from "./replica.ts";

const fakes = compileFakes("worker-model.ts");
const opened: FleetEngine[] = [];

afterEach(async () => {
  for (const engine of opened.splice(0)) await engine.close();
});
afterAll(() => fakes.remove());

async function startThreads(options: WorkerModelOptions, maxInFlight = 8) {
  const model = () => ({ module: fakes.url("worker-model.ts"), options });
  const start = async (name: string) =>
    new LocalReplica(
      name,
      await WorkerEngine.start({ model, pausesMs: [20, 40, 80, 160, 320], onFault: () => {} }),
      maxInFlight,
    );
  const fleet = await startFleet([await start("engine 0"), await start("engine 1")], { queueTimeoutMs: 60_000 });
  opened.push(fleet.engine);
  return fleet.engine;
}

it("runs requests on both engines, and adds up what they count", async () => {
  const engine = await startThreads({ busyMs: 2 });
  const all = await Promise.all(
    Array.from({ length: 8 }, (_, i) => outputsOf(engine.generate(generateRequest([5 + i, 6 + i], { maxTokens: 3 })))),
  );
  for (const [i, outputs] of all.entries()) expect(tokensOf(outputs)).toEqual([7 + i, 8 + i, 9 + i]);
  for (const { requests } of engine.replicas()) expect(requests).toBeGreaterThan(0);
  expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, promptTokens: 16, generatedTokens: 24 });
  expect(engine.stats().stepTokens.counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
});

it("goes on with every other request when one kills the engines, and ends that one", async () => {
  const engine = await startThreads({ busyMs: 1 });
  await engine.loadAdapter("red");
  const sampling = { maxTokens: 60 };
  const requests = Array.from({ length: 6 }, (_, i) =>
    generateRequest([3 + i], sampling, { adapter: i % 2 === 0 ? null : "version of red" }),
  );
  const running = requests.map((request) => outputsOf(engine.generate(request)));
  await expect.poll(() => engine.stats().generatedTokens).toBeGreaterThan(12);
  const poison = await outputsOf(engine.generate(generateRequest([EXIT_TOKEN])));
  expect(finishOf(poison)).toMatchObject({ reason: "error", fault: "unavailable" });
  for (const [i, outputs] of (await Promise.all(running)).entries()) {
    expect(tokensOf(outputs)).toEqual(Array.from({ length: 60 }, (_, at) => 4 + i + at));
    expect(outputs.filter(({ type }) => type === "prefill")).toHaveLength(1);
  }
  expect(engine.replicas().reduce((sum, { resumes }) => sum + resumes, 0)).toBeGreaterThan(0);
  await expect.poll(() => engine.replicas().map(({ state }) => state)).toEqual(["ready", "ready"]);
});

it("is healthy while one engine is ready, and waits for one when none is", async () => {
  const engine = await startThreads({});
  const poison = outputsOf(engine.generate(generateRequest([EXIT_TOKEN])));
  await expect.poll(() => engine.replicas().some(({ state }) => state === "away")).toBe(true);
  expect(tokensOf(await outputsOf(engine.generate(generateRequest([5], { maxTokens: 2 }))))).toEqual([6, 7]);
  await poison;
  expect(engine.healthy()).toBe(true);
  await engine.close();
  expect(engine.healthy()).toBe(false);
  expect(await outputsOf(engine.generate(generateRequest([5])))).toMatchObject([{ finish: { reason: "error" } }]);
});
