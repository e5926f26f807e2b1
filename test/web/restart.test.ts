// A server that is killed while a job runs and started again: the page goes on where it was.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { FlywheelClient } from "../../src/client/client.ts";
import { LLAMA } from "../support/training-service.ts";
import { inBrowser } from "./browser.ts";
import { answers, groupOf, KEY } from "./learning-server.ts";

const program = fileURLToPath(new URL("../../bin/flywheel", import.meta.url));
const fakeTrainer = `${process.execPath} ${fileURLToPath(new URL("../support/trainer-process.mjs", import.meta.url))}`;
const data = mkdtempSync(join(tmpdir(), "flywheel-restart-"));
/** While it exists, the trainer stays between its first two steps. */
const hold = join(mkdtempSync(join(tmpdir(), "held-")), "hold");
afterAll(() => rmSync(data, { recursive: true, force: true }));

inBrowser("a server that is started again", (bench) => {
  const running = new Set<ChildProcess>();
  const start = async (port: string) => {
    const model = ["--model", LLAMA, "--served-model-name", "tiny", "--dtype", "float32"];
    const flags = ["--port", port, "--data", data, "--api-key", KEY, ...model];
    const trainer = ["--trainer", "torch", "--trainer-dtype", "float32", "--trainer-command", fakeTrainer];
    const passed = ["--trainer-env", "FAKE_TRAINER_HELD_BY"];
    const args = [program, "serve", ...flags, ...trainer, ...passed, "--threads", "1", "--log-level", "error"];
    const env = { ...process.env, FAKE_TRAINER_HELD_BY: hold };
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env });
    running.add(child);
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^listening on (\S+)/.exec(line)?.[1];
      if (url !== undefined) return { child, url };
    }
    throw new Error("the server did not start");
  };
  const kill = async (child: ChildProcess) => {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    running.delete(child);
  };
  afterAll(async () => {
    for (const child of running) await kill(child);
  });

  it("is asked for what was missed, and its job is shown to the end", async () => {
    bench.announce(/ERR_|503/);
    const first = await start("0");
    const client = new FlywheelClient({ baseUrl: first.url, apiKey: KEY });
    const { id } = await client.register({ project: "p", name: "agent", base_model: "tiny" });
    const choices = await answers(client, "agent", "hello", 8);
    const groups = Array.from({ length: 60 }, () => groupOf("hello", choices, [0, 1, 2, 3, 4, 5, 6, 7]));
    writeFileSync(hold, "");
    const job = await client.submit(id, groups, { config: { grad_accumulation_sequences: 1 } });

    const page = await bench.open(`${first.url}/jobs/${job.id}`, { key: KEY });
    const policies = await bench.open(`${first.url}/policies`, { key: KEY });
    await policies.getByText(/● running/).waitFor();
    /** With which id each tab asked its own stream for what it missed. */
    const resumed: Record<string, string[]> = { job: [], policies: [] };
    const streams = {
      job: [page, `/training-jobs/${job.id}/events`],
      policies: [policies, "/preview/events"],
    } as const;
    for (const [name, [tab, path]] of Object.entries(streams)) {
      tab.on("request", (request) => {
        const last = request.headers()["last-event-id"];
        if (last !== undefined && request.url().includes(path)) resumed[name]!.push(last);
      });
    }
    await page.getByText("1 of 480 gradient steps").waitFor();
    await kill(first.child);
    await page.getByText("The server does not answer.").waitFor();
    await policies.getByText("The server does not answer.").waitFor();

    rmSync(hold);
    await start(new URL(first.url).port);
    await page.getByText("The server does not answer.").waitFor({ state: "detached" });
    await page.getByText("COMPLETED").waitFor();
    await page.getByText("from step 0 to step 1").waitFor();
    await page.getByText("started 2 times").waitFor();
    // every step is shown, and none twice
    await page.getByRole("img", { name: "Loss of 480 gradient steps" }).waitFor();
    await policies.getByRole("row").filter({ hasText: "agent" }).getByText(/✓/).waitFor();
    const seen: string[] = [];
    for await (const event of client.events(job.id)) seen.push(event.id);
    expect(seen).toContain(resumed.job![0]);
    expect(seen.indexOf(resumed.job![0]!)).toBeLessThan(seen.length - 1);
    expect(resumed.policies!.length).toBeGreaterThan(0);
  });
});
