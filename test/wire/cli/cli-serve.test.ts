// Starting, watching and stopping a server from the command line.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, cpSync, openSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BIN, clean, fresh, MODEL, paste, run, serve, started } from "../../support/cli-process.ts";
import { LINUX, need, needing } from "../../support/needs.ts";
import { looseFetch } from "../../support/test-server.ts";

/** A file of its own with as many bytes of the checkpoint's weights. */
function truncated(bytes: number, folder = fresh()): string {
  const file = join(folder, "model.safetensors");
  cpSync(join(MODEL, "model.safetensors"), file);
  truncateSync(file, bytes);
  return file;
}

function damaged(): string {
  const folder = fresh();
  cpSync(MODEL, folder, { recursive: true });
  truncated(100_000, folder);
  return folder;
}

describe("flywheel serve", () => {
  it("prints where it listens and a line that works as pasted, first start and later", async () => {
    const data = fresh();
    for (const first of [true, false]) {
      const server = await serve([MODEL, "--port", "0", "--data", data]);
      expect(server.out().match(/^listening on http:\/\/127\.0\.0\.1:\d+$/gm)).toHaveLength(1);
      expect(/shown once/.test(server.out())).toBe(first);
      const reply = await paste(server.out());
      expect(reply.status).toBe(200);
      expect((await reply.json()).model).toBe("qwen3");
      server.process.kill("SIGTERM");
      expect(await server.exit).toBe(0);
    }
  });

  it("goes on when the reader of its output goes away", async () => {
    const server = await serve([MODEL, "--port", "0", "--data", fresh(), "--api-key", "key"]);
    server.process.stdout!.destroy();
    server.process.stderr!.destroy();
    for (let i = 0; i < 2; i++) {
      // an unknown route is a line in the log, which nobody reads
      expect((await fetch(`${server.url}/nothing`, { headers: { authorization: "Bearer key" } })).status).toBe(404);
    }
    server.process.kill("SIGTERM"); // logs, too
    expect(await server.exit).toBe(0);
  });

  // The system drops signals that the first process of a container does not handle.
  const inContainer = ["-rpf", "--kill-child"];
  needing(need("the right to make a container", spawnSync("unshare", [...inContainer, "true"]).status === 0)).it(
    "as the first process of a container, stops when it was told to while it started",
    async () => {
      const command = [process.execPath, BIN, "serve", MODEL, "--port", "0", "--data", fresh(), "--api-key", "k"];
      // the shell tells its parent, the first process, as soon as that says that it starts
      const signalOnceStarting =
        'exec "$@" 2> >(while read -r line; do case $line in *starting*) kill -TERM 1;; esac; done)';
      const child = spawn("unshare", [...inContainer, "bash", "-c", signalOnceStarting, "bash", ...command], {
        env: clean(),
      });
      started.push(child);
      expect(await new Promise((resolve) => child.on("exit", resolve))).toBe(0);
    },
  );

  it("takes flags, environment and file, and masks secrets", async () => {
    const file = join(fresh(), "config.yaml");
    writeFileSync(file, `model: ${MODEL}\nserved-model-name: [one, two, one]\nmax-model-len: 100\n`);
    const args = [
      "--config",
      file,
      "--port=0",
      "--data",
      fresh(),
      "--max_num_seqs",
      "2",
      "--scheduling-policy",
      "fcfs",
      "--override-generation-config",
      '{"temprature":0.5}',
    ];
    const server = await serve(args, { FLYWHEEL_API_KEY: "k-env", FLYWHEEL_MAX_MODEL_LEN: "200" });
    const headers = { authorization: "Bearer k-env", "content-type": "application/json" };
    const models = await (await looseFetch(`${server.url}/v1/models`, { headers })).json();
    expect(models.data.map((m: { id: string; max_model_len: number }) => [m.id, m.max_model_len])).toEqual([
      ["one", 200],
      ["two", 200],
    ]);
    const body = JSON.stringify({ messages: [{ role: "user", content: "x" }], priority: 1 });
    expect((await looseFetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body })).status).toBe(400);
    expect(server.err()).toContain('api-key="***"');
    expect(server.err()).toMatch(/warn .*fields without effect fields=temprature/);
    expect(server.out() + server.err()).not.toContain("k-env");
  });

  it("drains on SIGTERM: the stream is complete, the exit code 0", async () => {
    const server = await serve([MODEL, "--port", "0", "--data", fresh(), "--api-key", "k"]);
    const response = await looseFetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer k", "content-type": "application/json" },
      body: JSON.stringify({
        messages: [{ role: "user", content: "x" }],
        stream: true,
        ignore_eos: true,
        max_tokens: 400,
      }),
    });
    server.process.kill("SIGTERM");
    const text = await response.text();
    expect(text).toContain('"finish_reason":"length"');
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(await server.exit).toBe(0);
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends at once with a second %s, also while the model runs",
    async (signal) => {
      const server = await serve([MODEL, "--port", "0", "--data", fresh(), "--api-key", "k"]);
      const stream = { stream: true, ignore_eos: true, n: 100, max_tokens: 400 };
      const response = await looseFetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer k", "content-type": "application/json" },
        body: JSON.stringify({ messages: [{ role: "user", content: "x" }], ...stream }),
      });
      server.process.kill(signal);
      await expect.poll(() => server.err()).toContain("draining");
      server.process.kill(signal);
      await server.exit;
      expect(server.process.signalCode).toBe(signal); // and not SIGABRT
      await expect(response.text()).rejects.toThrow();
    },
  );

  it.each([
    [["--host", "0.0.0.0"], /refusing to listen on 0\.0\.0\.0 without any token/],
    [["--port", "seventy"], /--port expects a whole number/],
    [["--model", "/nowhere"], /neither a folder that exists nor a model on the hub/],
    [["--tool-call-parser", "hermes"], /without --enable-auto-tool-choice: give both/],
    [["--max-model-len", "100000"], /more than the model's 512 positions/],
    [["--lora-modules", "x=/nowhere"], /--lora-modules x: /],
    [["--kv-cache-memory-bytes", "500000Gi"], /--kv-cache-memory-bytes \d+ is more than this machine's memory/],
    [["--chat-template", "./missing.jinja"], /there is no file/],
    [["--chat-template", "FOLDER"], /--chat-template: cannot read .*EISDIR/],
    [["--data", "FILE"], /cannot use the data directory .*model\.safetensors/],
    [["--model", "DAMAGED"], /model\.safetensors: holds .*truncated/],
    [["--generation-config", "FOLDER"], /generation_config\.json: no such file/],
    [["--override-generation-config", '{"top_p":5}'], /--override-generation-config: top_p must be/],
    [["--shutdown-timeout", "3000000"], /--shutdown-timeout expects a number of seconds, from 0 to 2147483/],
    [["--api-key", "secret", "SWALLOWED"], /--api-key takes every value .* put the model first, or use --model/],
  ])("explains a bad start in one line: %j", async (args, message) => {
    const places: Record<string, () => string> = { FILE: () => truncated(0), DAMAGED: damaged, FOLDER: fresh };
    const { code, err } = await run([
      "serve",
      "--port",
      "0",
      "--data",
      fresh(),
      ...(args[0] === "--model" || args.includes("SWALLOWED") ? [] : [MODEL]),
      ...args.map((arg) => places[arg]?.() ?? arg),
    ]);
    expect(code).toBe(1);
    expect(err).toMatch(message);
    expect(err).not.toMatch(/^\s+at /m);
  });

  it("refuses a data folder that another server has, naming the option; the first token is shown by the start that works", async () => {
    const data = fresh();
    const args = [MODEL, "--data", data, "--port"];
    const busy = await serve([MODEL, "--port", "0", "--data", fresh()]);
    const failed = await run(["serve", ...args, new URL(busy.url).port]);
    expect(failed.err).toMatch(/^flywheel: cannot listen on /m);

    const server = await serve([...args, "0"]);
    expect(server.out()).toMatch(/shown once/);
    const second = await run(["serve", ...args, "0"]);
    expect(second.err).toMatch(/^flywheel: another server is using the data directory .* another --data$/m);
    expect(second.err).not.toMatch(/^\s+at /m);
  });

  needing(LINUX).it("serves on while its log cannot be written", async () => {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [BIN, "serve", MODEL, "--port", "0", "--data", fresh()], {
      env: clean(),
      stdio: ["ignore", "pipe", full],
    });
    started.push(child);
    let out = "";
    child.stdout!.on("data", (bytes) => {
      out += bytes;
    });
    await expect.poll(() => out.includes("\ncurl ") || child.exitCode !== null).toBe(true);
    expect((await paste(out)).status).toBe(200);
    closeSync(full);
  });

  it("keeps the runtime from sending telemetry and from leaving telemetry files", async () => {
    const [home, temporary] = [fresh(), fresh()];
    await serve([MODEL, "--port", "0", "--data", fresh()], { HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: home });
    expect(readdirSync(home)).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("has help for newcomers", async () => {
    const { out } = await run(["serve", "--help"]);
    expect(out).toMatch(/Examples:/);
    expect(out).toMatch(/--max-model-len/);
    expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+/);
    expect((await run(["serv"])).code).toBe(1);
  });
});
