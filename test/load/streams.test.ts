// Many streams at once on a fake model: every one is complete and correct, and nothing is left behind. The long run
// against a real model is test/load/http-load.mjs.
import { afterAll, beforeAll, expect, it } from "vitest";
import { says, startTestServer, type TestServer } from "../wire/test-server.ts";

const STREAMS = 256;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { maxNumSeqs: 64 }, runner: { numBlocks: 2048 } });
});
afterAll(() => server.close());

it(`carries ${STREAMS} concurrent streams without a mistake`, async () => {
  const until = performance.now() + 3000;
  let completed = 0;
  const client = async (number: number) => {
    do {
      const text = `stream ${number} says ${"ü".repeat(number % 7)} and ends`;
      const chunks = await server.stream({ messages: says(text), stream_options: { include_usage: true } });
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(text);
      expect(chunks.at(-1).usage.completion_tokens).toBe(Buffer.byteLength(text) + 1);
      completed++;
    } while (performance.now() < until);
  };
  await Promise.all(Array.from({ length: STREAMS }, (_, number) => client(number)));
  expect(completed).toBeGreaterThanOrEqual(STREAMS);
  expect(server.service.admission.active).toBe(0);
  await expect.poll(() => server.service.engine.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
});
