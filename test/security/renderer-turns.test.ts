// One token sends many long chats at once. They are rendered and tokenised away from the main thread, where another token's chat may
// have to wait for its turn: for one long chat at most, not for all of them.
import { afterAll, beforeAll, expect, it } from "vitest";
import { OTHER_KEY, startVictim, type Victim } from "./victim.ts";

const PILE = 10;

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim();
}, 60_000);
afterAll(() => victim.stop());

const chat = (messages: number, characters: number) => ({
  messages: Array.from({ length: messages }, () => ({ role: "user", content: "lorem ".repeat(characters / 6) })),
});
const LONG = chat(3_000, 120);
/** Long enough to be rendered beside the others. */
const SMALL = chat(70, 6);

async function ask(body: object, key?: string): Promise<number> {
  const from = performance.now();
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await victim.request("POST", "/tokenize", body, headers);
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  return performance.now() - from;
}

it("delays another token's small chat by at most one long one", async () => {
  for (const body of [LONG, SMALL, LONG, SMALL]) await ask(body); // starts the processes
  const small = await ask(SMALL, OTHER_KEY);
  const long = await ask(LONG);
  let finished = 0;
  const piled = Array.from({ length: PILE }, () => ask(LONG).finally(() => finished++));
  await Promise.race(piled);
  const waited = await ask(SMALL, OTHER_KEY);
  const before = finished;
  // most of the pile was still waiting when the small chat had its answer
  expect(before).toBeLessThan(PILE / 2);
  const total = Math.max(...(await Promise.all(piled)));
  expect(waited).toBeLessThan(Math.max(small + 3 * long, total / 3));
}, 120_000);
