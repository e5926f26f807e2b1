// What a request says once counts for each of its prompts, of which it may have a thousand: a body of 1 MB would become gigabytes
// on its way to the engine. A server with a small heap lives on.
import { afterAll, beforeAll, expect, it } from "vitest";
import { startVictim, type Victim } from "./victim.ts";

const MIB = 2 ** 20;

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({ heap: 512, args: ["--max-num-seqs", "64"] });
}, 60_000);
afterAll(() => victim.stop());

const many = <T>(count: number, item: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));
const fields = (count: number, value: (i: number) => unknown) =>
  Object.fromEntries(many(count, (i) => [`field_${i}`, value(i)]));
const bias = (count: number) =>
  Object.fromEntries(many(count, (i) => [`${" ".repeat(Math.floor(i / 250))}${i % 250}`, 1]));

const REPEATED: Record<string, () => object> = {
  "a bias": () => ({ logit_bias: bias(10_000) }),
  "allowed tokens": () => ({ allowed_token_ids: many(100_000, (i) => i % 250) }),
  "stop tokens": () => ({ stop_token_ids: many(100_000, (i) => i) }),
  "stop strings": () => ({ stop: many(1000, (i) => `${i}`.padStart(60, "é")) }),
  "bad words": () => ({ bad_words: many(100, (i) => `${i}${"x".repeat(900)}`) }),
  "a constraint": () => ({
    structured_outputs: {
      json: { properties: fields(2000, () => ({ type: "integer" })), additionalProperties: false },
    },
  }),
};

const ROUTES: Record<string, [path: string, prompts: (count: number) => object]> = {
  completions: ["/v1/completions", (count) => ({ prompt: many(count, () => [5]), max_tokens: 1 })],
  batch: [
    "/v1/chat/completions/batch",
    (count) => ({ messages: many(count, () => [{ role: "user", content: "x" }]), max_tokens: 1 }),
  ],
};

const cases = Object.keys(ROUTES).flatMap((route) => Object.keys(REPEATED).map((what) => [what, route] as const));

it.each(cases)(
  "%s cannot be multiplied by the prompts of %s",
  async (what, route) => {
    const [path, prompts] = ROUTES[route]!;
    const before = victim.memory().peak;
    const reply = await victim.request("POST", path, { ...prompts(1000), ...REPEATED[what]!() });
    expect(reply.status).toBe(400);
    expect((await reply.json()).error.message).toMatch(/send fewer prompts/);
    expect(victim.memory().peak - before).toBeLessThan(300 * MIB);
    expect((await victim.request("GET", "/health")).status).toBe(200);
    const one = await victim.request("POST", path, { ...prompts(1), ...REPEATED[what]!() });
    expect(one.status, await one.text()).toBe(200);
  },
  120_000,
);

it("small ones may have many prompts", async () => {
  const body = { prompt: many(500, () => [5]), max_tokens: 1, stop: ["\n\n"], logit_bias: bias(100) };
  expect((await victim.request("POST", "/v1/completions", body)).status).toBe(200);
}, 120_000);
