// One token sends many expensive constraints at once. Another token's small schema must wait for no more than those that are
// being compiled already, and the first token cannot pile up work without end.
import { afterAll, beforeAll, expect, it } from "vitest";
import { OTHER_KEY, startVictim, type Victim } from "./victim.ts";

const PILE = 24;
/** That compile constraints. */
const THREADS = 2;

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({ args: ["--max-queue", "1000"] });
}, 60_000);
afterAll(() => victim.stop());

/** The automaton has to remember which of the last letters were an a. Its text is shorter than a usual schema. */
function expensive(serial: number): object {
  const properties = Object.fromEntries(
    Array.from({ length: 4 }, (_, i) => [
      `p${i}`,
      { type: "string", not: { pattern: `^[ab]*a[ab]{7}c{${4 * serial + i}}$` } },
    ]),
  );
  return { type: "object", properties };
}

function small(serial: number): object {
  const properties = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`field_${serial}_${i}`, { type: "string" }]),
  );
  return { type: "object", properties, required: Object.keys(properties) };
}

async function ask(schema: object, key?: string): Promise<{ status: number; ms: number }> {
  const from = performance.now();
  const response = await victim.request(
    "POST",
    "/v1/chat/completions",
    {
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 1,
      response_format: { type: "json_schema", json_schema: { name: "s", schema } },
    },
    key === undefined ? {} : { authorization: `Bearer ${key}` },
  );
  await response.arrayBuffer();
  return { status: response.status, ms: performance.now() - from };
}

it("delays another token's small schema by at most twice one expensive one", async () => {
  await ask(small(0)); // starts the threads
  await ask(expensive(1000));
  const harmless = await ask(small(3), OTHER_KEY);
  const alone = await ask(expensive(0));
  expect(alone.status).toBe(200);
  const from = performance.now();
  const piled = Array.from({ length: PILE }, (_, i) => ask(expensive(1 + i)));
  await Promise.race(piled); // the rest of the pile waits
  const waited = await ask(small(1), OTHER_KEY);
  expect(waited.status).toBe(200);
  const all = await Promise.all(piled);
  expect(all.every(({ status }) => status === 200)).toBe(true);
  // Two threads compile at once, on cores that are shared with everything else: in the pile, one takes longer than alone.
  const each = (THREADS * (performance.now() - from)) / PILE;
  expect(waited.ms - harmless.ms).toBeLessThan(2 * Math.max(alone.ms, each));
}, 120_000);

it("answers 429 to a token that has a hundred constraints waiting, and to nobody else", async () => {
  const busy = Array.from({ length: 4 }, (_, i) => ask(expensive(2000 + i))); // so that the others wait, however fast they are
  const piled = Array.from({ length: 130 }, (_, i) => ask(small(100 + i)));
  const other = ask(small(2), OTHER_KEY);
  const refused = (await Promise.all(piled)).filter(({ status }) => status === 429).length;
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThanOrEqual(34);
  await Promise.all(busy);
  expect((await other).status).toBe(200);
}, 120_000);
