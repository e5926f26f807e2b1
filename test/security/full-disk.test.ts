// The disk is full: in the middle of a body, of a step and of gradients. The request or the job ends and says why, nothing half
// written is left, and the server goes on once there is room again. The disk is a small one in memory, which takes root.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { need, needing } from "../support/needs.ts";
import { batchOf, CISPO, rollout } from "../wire/training/native-run-client.ts";
import { startVictim, type Victim } from "./victim.ts";

const PREVIEW = "/v1/preview";
const mount = mkdtempSync(join(tmpdir(), "full-disk-"));
const hasDisk = (() => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=48m", "tmpfs", mount], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

const ballast = join(mount, "ballast");
const free = () => {
  const { bavail, bsize } = statfsSync(mount);
  return bavail * bsize;
};
/** Leaves so many bytes. */
function fill(left: number): void {
  rmSync(ballast, { force: true });
  writeFileSync(ballast, new Uint8Array(free() - left));
}
const makeRoom = () => rmSync(ballast, { force: true });

needing(need("the right to mount a disk in memory", hasDisk)).describe("on a full disk", () => {
  let victim: Victim;
  let base: string;
  let model: string;
  const training = (...path: string[]) => join(mount, "data", "training", ...path);
  const json = async (method: string, path: string, body?: unknown) => {
    const reply = await victim.request(method, path, body);
    return { status: reply.status, body: await reply.json() };
  };
  const job = (examples: number, size: number) =>
    json("POST", `${PREVIEW}/sft-training-jobs`, {
      model_id: model,
      training_data: Array.from({ length: examples }, () => ({
        messages: [
          { role: "user", content: "x".repeat(size) },
          { role: "assistant", content: "y" },
        ],
      })),
    });
  const ended = async (id: string) => {
    for (;;) {
      const { body } = await json("GET", `${PREVIEW}/training-jobs/${id}`);
      if (/COMPLETED|FAILED/.test(body.status)) return body;
      await sleep(20);
    }
  };

  beforeAll(async () => {
    victim = await startVictim({ data: join(mount, "data") });
    base = (await json("GET", `${PREVIEW}/base-models`)).body[0];
    model = (await json("POST", `${PREVIEW}/models`, { project: "p", name: "m", base_model: base })).body.id;
    // starts the trainer
    const first = await job(2, 20);
    expect((await ended(first.body.id)).status).toBe("COMPLETED");
  });
  afterAll(async () => {
    await victim?.stop();
    execFileSync("umount", [mount]);
  });

  it("a body is refused in the middle, and nothing of it is left", async () => {
    fill(2 << 20);
    const refused = await job(3_000, 4_000);
    expect(refused).toMatchObject({ status: 507, body: { detail: "The server's disk is full." } });
    expect(readdirSync(training("jobs"))).toEqual([]);
    const { body } = await json("GET", "/v1/me");
    expect(body.storage.reserved).toBe(0);
    expect((await victim.request("GET", "/health")).status).toBe(200);
    makeRoom();
  });

  it("a new model is refused, and nothing of it is left", async () => {
    const before = readdirSync(training("models"));
    fill(8_192);
    const refused = await json("POST", `${PREVIEW}/models`, { project: "p", name: "other", base_model: base });
    expect(refused).toMatchObject({ status: 507, body: { detail: "The server's disk is full." } });
    expect(readdirSync(training("models"))).toEqual(before);
    makeRoom();
  });

  it("a job ends and says why; its step leaves nothing, and the next one trains", async () => {
    const steps = () => readdirSync(training("models", model)).filter((name) => name !== "curves");
    await ended((await job(2, 20)).body.id);
    const before = steps();
    // room for the data, not for the step
    fill(100_000);
    const accepted = await job(2, 20);
    expect([200, 507]).toContain(accepted.status);
    const look = async () => (await json("GET", `${PREVIEW}/training-jobs/${accepted.body.id}`)).body;
    // it ends, or waits because the database had no room to start it
    if (accepted.status === 200) await expect.poll(async () => (await look()).status).toMatch(/FAILED|PENDING/);
    expect(steps()).toEqual(before);
    makeRoom();
    let made = before.length;
    if (accepted.status === 200) {
      const { status, error_message } = await ended(accepted.body.id);
      if (status === "COMPLETED") made++;
      else expect(error_message).toBe("the server's disk is full");
    }
    expect((await ended((await job(2, 20)).body.id)).status).toBe("COMPLETED");
    expect(steps()).toHaveLength(made + 1);
    await expect.poll(() => readdirSync(training("jobs"))).toEqual([]);
  });

  it("a pass ends and leaves no gradients", async () => {
    const modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    const run = (
      await json("POST", "/v1/training/runs:resolve", {
        request_id: "r",
        spec: { base_model: base, lora_rank: 8, lora_target_modules: modules },
      })
    ).body.run_id;
    const pass = (sequence: number) =>
      json("POST", `/v1/training/runs/${run}/forward_backward`, {
        ...{ request_id: `f${sequence}`, sequence_id: sequence, loss: CISPO },
        batch: batchOf(rollout("m", [10, 11, 12], [20, 21], 1)),
      });
    const over = async (id: string) => {
      const look = async () => (await json("GET", `/v1/training/runs/${run}/operations/${id}`)).body;
      await expect.poll(async () => (await look()).status, { timeout: 120_000 }).toMatch(/succeeded|failed/);
      return look();
    };
    const gradients = () => readdirSync(training("models", run, "gradients"));
    expect((await over((await pass(0)).body.operation_id)).status).toBe("succeeded");
    fill(100_000);
    const accepted = await pass(1);
    expect([200, 507]).toContain(accepted.status);
    makeRoom();
    if (accepted.status === 200) await over(accepted.body.operation_id);
    const known = (await json("GET", "/v1/me")).body.storage.gradients;
    const size = (name: string) => statSync(training("models", run, "gradients", name)).size;
    // whole files that the account knows, and nothing else
    expect(gradients().every((name) => /^[0-9a-f-]{36}\.safetensors$/.test(name))).toBe(true);
    expect(gradients().reduce((sum, name) => sum + size(name), 0)).toBe(known);
    const next = await pass(accepted.status === 200 ? 2 : 1);
    expect((await over(next.body.operation_id)).status).toBe("succeeded");
  });

  it("it was the same process all the time", () => {
    expect(victim.process.exitCode).toBeNull();
  });
});
