// PostgreSQL crashes and comes back, again and again, while clients use the servers. FLYWHEEL_TEST_RESTARTS=24 makes two
// minutes of it, and FLYWHEEL_TEST_SEED chooses what the clients do.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { Client } from "../chaos/client.ts";
import { Chance } from "./chance.ts";
import { Deployment } from "./deployment.ts";
import { Learner } from "./learner.ts";

const RESTARTS = Number(process.env.FLYWHEEL_TEST_RESTARTS ?? 3);
const SEED = Number(process.env.FLYWHEEL_TEST_SEED ?? 24);
const EVERY_MS = 5_000;
/** How long a call of the store waits for a server that is unreachable, and some time for a busy machine. */
const REFUSED_MS = [2_500, 60_000] as const;

let deployment: Deployment;
afterEach(() => deployment.close());

/** A chat as a stream. Returns its status and its text. */
async function stream(model: string): Promise<{ status: number; text: string; retryAfter: string | null }> {
  const response = await fetch(`${deployment.member("api-1").url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${deployment.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ model, stream: true, ignore_eos: true, max_tokens: 200, temperature: 0 },
      messages: [{ role: "user", content: "a b c" }],
    }),
  });
  return { status: response.status, text: await response.text(), retryAfter: response.headers.get("retry-after") };
}

it(`${RESTARTS} restarts under load lose nothing, and break no stream (seed ${SEED})`, async () => {
  deployment = await Deployment.start({ names: ["api-1", "worker-1", "worker-2"] });
  const { requests, postgres } = deployment;
  const clients = [1, 2].map((i) => new Client(`client-${i}`, requests, new Chance(SEED + i)));
  let over = false;
  let streams = 0;
  const work = [
    ...clients.map((client) => client.run(() => over)),
    (async () => {
      for (; !over; streams++) {
        const { status, text } = await stream("tiny");
        expect({ status, end: text.slice(-20) }).toEqual({ status: 200, end: expect.stringContaining("[DONE]") });
        expect(text).not.toContain('"error"');
      }
    })(),
    (async () => {
      for (let i = 0; i < RESTARTS && !over; i++) {
        await sleep(EVERY_MS);
        await postgres.restart("immediate");
      }
    })(),
  ];
  const ends = () => {
    over = true;
  };
  const results = await Promise.allSettled(work.map((one) => one.finally(ends)));
  expect(results.filter(({ status }) => status === "rejected")).toEqual([]);
  expect(streams).toBeGreaterThan(0);
  expect(await deployment.settle()).toEqual([]);
  for (const client of clients) await client.askAgain();
  expect(clients.flatMap(({ wrong }) => wrong)).toEqual([]);
  expect(await deployment.finish(clients.flatMap(({ accepted }) => [...accepted]))).toEqual([]);
});

it("while it is unreachable, the base model answers, trained ones are refused for now, and jobs go on", async () => {
  deployment = await Deployment.start({ names: ["api-1", "worker-1"] });
  const { requests, postgres, store } = deployment;
  const learner = await Learner.register("agent", requests, new Chance(SEED), 4);
  const jobId = await learner.submit();
  const sql = "SELECT 1 AS found FROM job_events WHERE job_id = ?1 AND type = 'gradient_step'";
  await expect.poll(() => store.get(sql, jobId)).toBeTruthy();
  await postgres.kill();
  expect(await stream("tiny")).toMatchObject({ status: 200, text: expect.stringContaining("[DONE]") });
  const asked = performance.now();
  const refused = await stream("agent");
  expect(refused).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
  expect(refused.text).toContain("The database cannot be reached");
  const waited = performance.now() - asked;
  expect(waited).toBeGreaterThan(REFUSED_MS[0]);
  expect(waited).toBeLessThan(REFUSED_MS[1]);
  // the trainer is done by now, and the worker waits to record it
  await sleep(1_000);
  await postgres.restart("immediate");
  expect(await learner.ended(jobId)).toMatchObject({ status: "COMPLETED" });
  expect(await stream("agent@1")).toMatchObject({ status: 200 });
  expect(await deployment.finish(learner.accepted)).toEqual([]);
});
