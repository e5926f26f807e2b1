// `flywheel train` and `flywheel policies` against a server with a fake trainer.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { bar, sparkline } from "../../../src/cli/draw.ts";
import { createProgram } from "../../../src/cli/main.ts";
import { FlywheelClient } from "../../../src/client/client.ts";
import { toyIds } from "../../support/toy-encoder.ts";
import { startTrainingServer, type TrainingServer } from "../training/training-server.ts";

let server: TrainingServer;
let folder: string;
beforeAll(async () => {
  server = await startTrainingServer();
  folder = mkdtempSync(join(tmpdir(), "cli-training-"));
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  process.exitCode = undefined;
});

const trajectory = (reply: string, reward: number) => ({
  messages_and_choices: [
    { role: "user", content: "q1" },
    {
      message: { role: "assistant", content: reply },
      logprobs: { content: toyIds(reply).map((id) => ({ token: `token_id:${id}`, logprob: -1 })) },
    },
  ],
  reward,
});

/** What a command printed. */
async function run(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((line) => void lines.push(String(line)));
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(String(text).trimEnd());
    return true;
  });
  try {
    await createProgram().parseAsync(["node", "flywheel", ...args, "--url", server.url, "--api-key", "ann"]);
  } finally {
    log.mockRestore();
    write.mockRestore();
  }
  return lines.join("\n");
}

function groupsFile(lines: unknown[]): string {
  const file = join(folder, `${Math.random()}.jsonl`);
  writeFileSync(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  return file;
}

describe("flywheel train", () => {
  const groups = [{ trajectories: [trajectory("a1 <e>", 1), trajectory("a2 <e>", 0), trajectory("a3 <e>", 0.5)] }, ""];

  it("submits the groups, shows progress and says what became of them", async () => {
    const output = await run("train", groupsFile(groups), "--model", "cli", "--learning-rate", "1e-3");
    expect(output).toMatch(/2\/2 {2}loss \d/);
    expect(output).toMatch(/cli is at step 1 \(2 trained, 1 zero_advantage; 22 tokens in/);
    expect(process.exitCode).toBeUndefined();
  });

  it("prints events as JSON when asked", async () => {
    const output = await run("train", groupsFile(groups), "--model", "cli", "--json");
    const lines = output.split("\n").map((line) => JSON.parse(line));
    expect(lines.map(({ type }) => type)).toEqual([
      ...["training_started", "gradient_step", "gradient_step", "training_ended", undefined],
    ]);
    expect(lines.at(-1)).toMatchObject({ status: "COMPLETED", step: 2 });
  });

  it("goes on with the policy of that name, whatever its project", async () => {
    await run("train", groupsFile(groups), "--model", "other", "--project", "theirs");
    expect(await run("train", groupsFile(groups), "--model", "other")).toContain("other is at step 2");
    expect(await run("train", groupsFile(groups), "--model", "other", "--project", "ours")).toContain("at step 1");
  });

  it("follows a job over a restart of the server", async () => {
    const real = globalThis.fetch;
    let failures = 3;
    const spy = vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
      if (String(input).includes("/events") && failures-- > 0)
        return Promise.reject(new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") }));
      return real(input, init);
    });
    try {
      expect(await run("train", groupsFile(groups), "--model", "cli")).toMatch(/cli is at step \d/);
    } finally {
      spy.mockRestore();
    }
  });

  it("says what becomes of the job when the server stays away", async () => {
    const spy = vi.spyOn(FlywheelClient.prototype, "events").mockImplementation(() => {
      throw new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });
    });
    try {
      const training = run("train", groupsFile(groups), "--model", "cli");
      await expect(training).rejects.toThrow(/the job [0-9a-f-]{36} continues when it is back/);
    } finally {
      spy.mockRestore();
    }
  });

  it.each([
    [["{"], [], /line 1: not valid JSON/],
    [[], [], /has no groups/],
    [groups, ["--config", "["], /--config is not valid JSON/],
    [groups, ["--learning-rate", "fast"], /expects a number/],
    [groups, ["--config", '{"epsilon":-1}'], /422: body.experimental_config.epsilon/],
  ])("refuses %j %j", async (lines, flags, message) => {
    await expect(run("train", groupsFile(lines), "--model", "cli", ...flags)).rejects.toThrow(message);
  });

  it("explains a file or a server that is not there", async () => {
    await expect(run("train", join(folder, "none"), "--model", "cli")).rejects.toThrow(/cannot read/);
    const args = ["models", "--url", "http://127.0.0.1:9", "--api-key", "x"];
    await expect(createProgram().parseAsync(["node", "flywheel", ...args])).rejects.toThrow(/is the server running/);
  });
});

describe("flywheel policies", () => {
  it("lists policies and the steps of one, by its former name too", async () => {
    const all = await run("policies");
    expect(await run("models")).toBe(all);
    expect(all).toMatch(/name +step +project +base model/);
    expect(all).toMatch(/cli +\d +default +tiny/);
    const steps = await run("policies", "cli");
    expect(steps).toMatch(/cli@0/);
    expect(steps).toMatch(/cli@1 .*0\.5000/);
    expect(JSON.parse(await run("policies", "cli", "--json"))[0]).toMatchObject({ step: 0 });
    await expect(run("policies", "nobody")).rejects.toThrow(/no policy nobody/);
  });
});

it("draws curves and bars", () => {
  expect(sparkline([0, 1, 2, 3], 3)).toBe("▁▅█");
  expect(sparkline([5, 5], 9)).toBe("▁▁");
  expect(bar(0.5, 4)).toBe("██··");
  expect(bar(0.3, 4)).toBe("█▂··");
  expect(bar(2, 2)).toBe("██");
});
