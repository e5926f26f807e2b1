// Many streams at once on a fake model: every one is complete and correct, and nothing is left behind. The long run
// against a real model is test/load/http-load.mjs.
import { afterAll, beforeAll, expect, it } from "vitest";
import { says, startTestServer, type TestServer } from "../support/test-server.ts";

const STREAMS = 256;
const ROUNDS = 3;
const MAX_RUNNING = 64;
let server: TestServer;
beforeAll(async () => {
  // A step takes some milliseconds, as a model's does: else requests would end as fast as they come, and none would wait.
  const before = () => new Promise<void>((resolve) => setTimeout(resolve, 4));
  server = await startTestServer({ config: { maxNumSeqs: MAX_RUNNING }, runner: { numBlocks: 2048, before } });
});
afterAll(() => server.close());

it(`carries ${STREAMS} concurrent streams without a mistake`, async () => {
  const most = { open: 0, running: 0, waiting: 0 };
  const look = () => {
    const { running, waiting } = server.service.engine.stats();
    most.open = Math.max(most.open, server.service.admission.active);
    most.running = Math.max(most.running, running);
    most.waiting = Math.max(most.waiting, waiting);
  };
  const client = async (number: number) => {
    for (let round = 0; round < ROUNDS; round++) {
      const text = `stream ${number} says ${"ü".repeat(number % 7)} in round ${round} and ends`;
      const chunks = await server.stream({ messages: says(text), stream_options: { include_usage: true } });
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(text);
      expect(chunks.at(-1).usage.completion_tokens).toBe(Buffer.byteLength(text) + 1);
    }
  };
  const watch = setInterval(look, 1);
  await Promise.all(Array.from({ length: STREAMS }, (_, number) => client(number)));
  clearInterval(watch);
  // They were together: the engine was full, or nearly so whenever somebody looked, and others waited for it.
  expect(most.open).toBeGreaterThan(MAX_RUNNING * 2);
  expect(most.running).toBeGreaterThan(MAX_RUNNING / 2);
  expect(most.running).toBeLessThanOrEqual(MAX_RUNNING);
  expect(most.waiting).toBeGreaterThan(0);
  expect(server.service.admission.active).toBe(0);
  await expect.poll(() => server.service.engine.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
});
