// A question of 9 kB about a constraint asks what the model thought at every token of a long prompt and output. It must be
// scheduled in chunks like any other prompt, so that streams go on beside it, and end when it is told to.
import { afterAll, beforeAll, expect, it } from "vitest";
import { KEY, startVictim, type Victim } from "./victim.ts";

const PATH = "/v1/structured_outputs/inspect";
const ANYTHING = { regex: "(.|\\n)*" };

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({ model: "bundled" });
});
afterAll(() => victim.stop());

/** Ids that no prompt before had, so that nothing comes from the prefix cache. */
let seed = 1;
function ids(count: number): number[] {
  return Array.from({ length: count }, () => {
    seed = (seed * 48_271) % 0x7fff_ffff;
    return 300 + (seed % 7000);
  });
}

/** The longest wait between two events of a stream, in milliseconds, while `work` runs. */
async function longestGap(work: () => Promise<unknown>): Promise<number> {
  const leaving = new AbortController();
  const body = { prompt: ids(8), max_tokens: 2000, ignore_eos: true, stream: true };
  const stream = await victim.request("POST", "/v1/completions", body, {}, leaving.signal);
  let last = 0;
  let longest = 0;
  let measures = false;
  const reading = (async () => {
    for await (const _ of stream.body!) {
      const now = performance.now();
      if (measures) longest = Math.max(longest, now - last);
      last = now;
    }
  })().catch(() => {});
  await expect.poll(() => last).toBeGreaterThan(0);
  measures = true;
  await work();
  // what the work held up comes now
  const ended = last;
  await expect.poll(() => last).toBeGreaterThan(ended);
  leaving.abort();
  await reading;
  return longest;
}

const inspect = (prompt: number[], tokens: number[], headers = {}) =>
  victim.request("POST", PATH, { structured_outputs: ANYTHING, prompt_token_ids: prompt, tokens }, headers);

it.each([
  ["a long prompt", 1900, 4],
  ["a long output", 30, 1800],
])("lets streams go on beside a question about %s", async (_, prompted, sent) => {
  const complete = async () => {
    const reply = await victim.request("POST", "/v1/completions", { prompt: ids(prompted + sent), max_tokens: 1 });
    expect(reply.status).toBe(200);
  };
  const ask = async () => {
    const reply = await inspect(ids(prompted), Array(sent).fill(300));
    const { positions } = await reply.json();
    expect(positions).toHaveLength(sent);
    for (const { legal_mass } of positions) expect(legal_mass).toBeGreaterThan(0);
  };
  await inspect([300], [300]); // the thread that looks at constraints starts with its first question
  const completion = await longestGap(complete);
  const question = await longestGap(ask);
  expect(question).toBeLessThan(Math.max(5 * completion, 1000));
});

it("ends a question through DELETE", async () => {
  const asked = inspect(ids(30), Array(1800).fill(300), { "x-request-id": "question" });
  const headers = { authorization: `Bearer ${KEY}` };
  const end = () => fetch(`${victim.url}/v1/engine/requests/question`, { method: "DELETE", headers });
  await expect.poll(async () => (await end()).status).toBe(204);
  const reply = await asked;
  expect(reply.status).toBe(409);
  expect((await reply.json()).error.message).toMatch(/was ended/);
  await expect.poll(async () => (await (await victim.request("GET", "/v1/engine")).json()).requests).toEqual([]);
});
