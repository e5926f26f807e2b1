// A training token writes as much as it may: bodies that never end, jobs, models, runs, gradients, forks, and models that it
// deletes at once. What the server has on disk stays within --max-step-bytes, and what is written in between.
import { readdirSync, statSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LooseResponse } from "../support/test-server.ts";
import { batchOf, CISPO, rollout } from "../wire/training/native-run-client.ts";
import { KEY, OTHER_KEY, startVictim, type Victim } from "./victim.ts";

const LIMIT = 4 << 20;

/** The journal of the database, and files that are on their way from one name to another. */
const SLACK = 6 << 20;

const PREVIEW = "/v1/preview";
const DATA = "x".repeat(4_000);

let victim: Victim;
let base: string;
beforeEach(async () => {
  victim = await startVictim({ args: ["--max-step-bytes", String(LIMIT), "--step-grace", "3600"] });
  base = (await (await victim.request("GET", `${PREVIEW}/base-models`)).json())[0];
});
afterEach(() => victim.stop());

/** All files of the server, in bytes. */
function onDisk(folder = victim.data): number {
  let entries: ReturnType<typeof entriesOf>;
  try {
    entries = entriesOf(folder);
  } catch {
    return 0; // gone meanwhile
  }
  return entries.reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return sum + (entry.isDirectory() ? onDisk(path) : (statSync(path, { throwIfNoEntry: false })?.size ?? 0));
  }, 0);
}

const entriesOf = (folder: string) => readdirSync(folder, { withFileTypes: true });

/** Runs an attack. At no moment it has added more to the files of the server than it may. */
async function within<R>(what: string, attack: () => Promise<R>): Promise<R> {
  const before = onDisk();
  let most = 0;
  let over = false;
  const attacking = attack().finally(() => {
    over = true;
  });
  while (!over) {
    most = Math.max(most, onDisk() - before);
    await sleep(20);
  }
  const result = await attacking;
  expect(Math.max(most, onDisk() - before), what).toBeLessThan(LIMIT + SLACK);
  expect((await storage()).used).toBeLessThanOrEqual(LIMIT);
  return result;
}

const as = (key: string) => ({ authorization: `Bearer ${key}` });
const storage = async (key = KEY) => (await (await victim.request("GET", "/v1/me", undefined, as(key))).json()).storage;

/** Sends the same again and again, several at once, and returns how often which status came. */
async function flood(times: number, send: (i: number) => Promise<{ status: number }>): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let next = 0;
  const worker = async () => {
    while (next < times) {
      const { status } = await send(next++);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return statuses;
}

let names = 0;
const newModel = (more: object = {}) =>
  victim.request("POST", `${PREVIEW}/models`, { project: "p", name: `m${names++}`, base_model: base, ...more });

const idOf = async (made: LooseResponse | Promise<LooseResponse>): Promise<string> => (await (await made).json()).id;

const sftJob = (modelId: string, examples: number) => {
  const example = {
    messages: [
      { role: "user", content: DATA },
      { role: "assistant", content: "y" },
    ],
  };
  return victim.request("POST", `${PREVIEW}/sft-training-jobs`, {
    model_id: modelId,
    training_data: Array.from({ length: examples }, () => example),
  });
};

const MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
const newRun = () =>
  victim.request("POST", "/v1/training/runs:resolve", {
    request_id: `r${names++}`,
    spec: { base_model: base, lora_rank: 8, lora_target_modules: MODULES },
  });

const forwardBackward = (run: string, sequence: number) =>
  victim.request("POST", `/v1/training/runs/${run}/forward_backward`, {
    ...{ request_id: `f${sequence}`, sequence_id: sequence, loss: CISPO },
    batch: batchOf(rollout("m", [10, 11, 12], [20, 21], 1)),
  });

/** A body that begins and never ends. Resolves when it was refused, or all of `bytes` was taken. */
function endlessBody(modelId: string, bytes: number): { refused: Promise<boolean>; end(): void } {
  const headers = { ...as(KEY), "content-type": "application/json", "transfer-encoding": "chunked" };
  const sent = httpRequest(`${victim.url}${PREVIEW}/sft-training-jobs`, { method: "POST", headers });
  const refused = new Promise<boolean>((resolve) => {
    sent.on("response", (response) => {
      response.resume();
      resolve(response.statusCode === 429);
    });
    sent.on("error", () => resolve(false));
    const example = JSON.stringify({
      messages: [
        { role: "user", content: DATA },
        { role: "assistant", content: "y" },
      ],
    });
    sent.write(`{"model_id": "${modelId}", "training_data": [${example}`);
    let left = bytes;
    const more = () => {
      for (; left > 0; left -= example.length) {
        if (!sent.write(`,${example}`)) return void sent.once("drain", more);
      }
    };
    more();
  });
  return { refused, end: () => sent.destroy() };
}

describe("one token fills the disk with", () => {
  it("bodies that never end: those that do not fit are refused in the middle", async () => {
    const model = await idOf(newModel());
    const bodies = Array.from({ length: 12 }, () => endlessBody(model, LIMIT / 2));
    let refused = 0;
    for (const body of bodies) {
      void body.refused.then((was) => {
        if (was) refused++;
      });
    }
    // there is room for one body, and for parts of others
    await within("bodies", () => expect.poll(() => refused).toBeGreaterThanOrEqual(10));
    for (const body of bodies) body.end();
    await expect.poll(async () => (await storage()).reserved).toBe(0);
    await expect.poll(() => readdirSync(join(victim.data, "training", "jobs"))).toEqual([]);
  });

  it("jobs, their records and their steps", async () => {
    const model = await idOf(newModel());
    const statuses = await within("jobs", () => flood(60, () => sftJob(model, 200)));
    expect(statuses[429]).toBeGreaterThan(0);
    expect(statuses[429]! + (statuses[200] ?? 0)).toBe(60);
    const refused = await (await sftJob(model, 5_000)).json();
    expect(refused.error).toMatchObject({ code: 429, message: expect.stringMatching(/uses \d+ of 4194304/) });
  });

  it("models", async () => {
    const statuses = await within("models", () => flood(250, () => newModel()));
    expect(statuses[200]).toBeGreaterThan(50);
    expect(statuses[429]! + statuses[200]!).toBe(250);
  });

  it("forks and runs", async () => {
    const model = await idOf(newModel());
    const attack = (i: number) => (i % 2 === 0 ? newRun() : newModel({ from: { model_id: model } }));
    const statuses = await within("forks and runs", () => flood(250, attack));
    expect(statuses[200]).toBeGreaterThan(50);
    expect(statuses[429]! + statuses[200]!).toBe(250);
  });

  it("gradients, and gradients that it drops", async () => {
    const run = (await (await newRun()).json()).run_id;
    const statuses = await within("gradients", () =>
      flood(1, async () => {
        for (let i = 0; i < 1000; i++) {
          const passed = await forwardBackward(run, i);
          if (passed.status !== 200) return passed;
          const { operation_id } = await passed.json();
          if (i % 4 === 0) await victim.request("POST", `/v1/training/runs/${run}/operations/${operation_id}:cancel`);
        }
        return { status: 200 };
      }),
    );
    expect(statuses).toEqual({ 429: 1 });
  });

  it("models that it deletes at once: they count until their files are gone", async () => {
    const statuses = await within("deleted models", () =>
      flood(250, async () => {
        const made = await newModel();
        if (made.status === 200) await victim.request("DELETE", `${PREVIEW}/models/${await idOf(made)}`);
        return made;
      }),
    );
    expect(statuses[200]).toBeGreaterThan(50);
    expect(statuses[429]).toBeGreaterThan(0);
    expect((await storage()).deleted).toBeGreaterThan(LIMIT / 2);
    // others have their own room
    expect(await storage(OTHER_KEY)).toMatchObject({ limit: LIMIT, used: 0 });
    const theirs = { project: "p", name: "theirs", base_model: base };
    expect((await victim.request("POST", `${PREVIEW}/models`, theirs, as(OTHER_KEY))).status).toBe(200);
  });
});
