// The command as a person types it: real processes from dist/, a tiny real checkpoint.
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { looseFetch } from "./test-server.ts";

const BIN = fileURLToPath(new URL("../../bin/flywheel", import.meta.url));
const MODEL = fileURLToPath(new URL("../fixtures/qwen3", import.meta.url));

interface Served {
  process: ChildProcess;
  url: string;
  /** Everything on standard output. */
  out: () => string;
  err: () => string;
  exit: Promise<number | null>;
}

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) {
    child.kill("SIGKILL");
  }
});

function clean(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(FLYWHEEL|VLLM|OPENAI)_/.test(key)));
}

async function serve(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Served> {
  const child = spawn(process.execPath, [BIN, "serve", ...args], { env: { ...clean(), ...env } });
  started.push(child);
  let out = "";
  let err = "";
  child.stdout.on("data", (bytes) => {
    out += bytes;
  });
  child.stderr.on("data", (bytes) => {
    err += bytes;
  });
  const exit = new Promise<number | null>((resolve) => child.on("exit", resolve));
  await expect.poll(() => out.includes("\ncurl ") || child.exitCode !== null, { timeout: 20_000 }).toBe(true);
  const url = /^listening on (http:\/\/\S+)$/m.exec(out)?.[1] ?? "";
  return { process: child, url, out: () => out, err: () => err, exit };
}

function run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { env: { ...clean(), ...env } }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** The printed curl line, sent by fetch. */
function paste(line: string) {
  const [, url, token, body] = /^curl -s (\S+) -H 'Authorization: (.*?)' -H '.*?' -d '(.*)'$/m.exec(line)!;
  return looseFetch(url!, {
    method: "POST",
    headers: { authorization: token!, "content-type": "application/json" },
    body: body!,
  });
}

const fresh = () => mkdtempSync(join(tmpdir(), "flywheel-cli-"));

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
  }, 60_000);

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
  }, 60_000);

  // The system drops signals that the first process of a container does not handle.
  const inContainer = ["-rpf", "--kill-child"];
  it.runIf(spawnSync("unshare", [...inContainer, "true"]).status === 0)(
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
    30_000,
  );

  it("takes flags, environment and file, and masks secrets", async () => {
    const file = join(fresh(), "config.yaml");
    writeFileSync(file, `model: ${MODEL}\nserved-model-name: [one, two]\nmax-model-len: 100\n`);
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
  }, 30_000);

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
  }, 30_000);

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends at once with a second %s, also while the model runs",
    async (signal) => {
      const server = await serve([MODEL, "--port", "0", "--data", fresh(), "--api-key", "k"]);
      const stream = { stream: true, ignore_eos: true, n: 16, max_tokens: 400 };
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
    30_000,
  );

  it.each([
    [["--host", "0.0.0.0"], /refusing to listen on 0\.0\.0\.0 without any token/],
    [["--port", "seventy"], /--port expects a whole number/],
    [["--model", "/nowhere"], /neither a folder that exists nor a model on the hub/],
    [["--enable-auto-tool-choice"], /go together/],
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
    [["--api-key", "secret", "SWALLOWED"], /--api-key takes every value .* give the model first or as --model/],
  ])(
    "explains a bad start in one line: %j",
    async (args, message) => {
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
    },
    30_000,
  );

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

  it.skipIf(process.platform !== "linux")("serves on while its log cannot be written", async () => {
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
    await expect.poll(() => out.includes("\ncurl ") || child.exitCode !== null, { timeout: 20_000 }).toBe(true);
    expect((await paste(out)).status).toBe(200);
    closeSync(full);
  });

  it("does not let the runtime report to its makers, or leave files of that behind", async () => {
    const [home, temporary] = [fresh(), fresh()];
    await serve([MODEL, "--port", "0", "--data", fresh()], { HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: home });
    expect([readdirSync(home), readdirSync(temporary)]).toEqual([[], []]);
  });

  it("has help for newcomers", async () => {
    const { out } = await run(["serve", "--help"]);
    expect(out).toMatch(/Examples:/);
    expect(out).toMatch(/--max-model-len/);
    expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+/);
    expect((await run(["serv"])).code).toBe(1);
  });
});

describe("flywheel demo", () => {
  it.each([
    // the trainer runs
    ["stops its server and removes its folder", /step {2}0/, ["SIGINT"]],
    ["removes its folder at the second signal, too", /is served/, ["SIGTERM", "SIGTERM"]],
  ] as const)("%s", { timeout: 120_000 }, async (_title, begun, signals) => {
    const folder = fresh();
    // A socket's path for other servers does not matter.
    const env = { ...clean(), TMPDIR: folder, FLYWHEEL_UDS: join(folder, "socket") };
    const demo = spawn(process.execPath, [BIN, "demo"], { env });
    started.push(demo);
    let out = "";
    demo.stdout.on("data", (bytes) => {
      out += bytes;
    });
    const exit = new Promise((resolve) => demo.on("exit", (_code, signal) => resolve(signal)));
    await expect.poll(() => begun.test(out), { timeout: 60_000 }).toBe(true);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^flywheel-demo-/)]);
    for (const signal of signals) demo.kill(signal);
    expect(await exit).toBe(signals[0]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("leaves nothing when it does not start", async () => {
    const folder = fresh();
    const { code } = await run(["demo", "--port", "high"], { TMPDIR: folder });
    expect([code, readdirSync(folder)]).toEqual([1, []]);
  });
});

describe("flywheel tokens and chat", () => {
  it("work against a running server", async () => {
    const data = fresh();
    const server = await serve([MODEL, "--port", "0", "--data", data, "--api-key", "k"]);
    const made = await run([
      "tokens",
      "create",
      "--name",
      "ci",
      "--scope",
      "inference",
      "--lifetime",
      "1h",
      "--data",
      data,
    ]);
    const token = made.out.trim();
    expect(token).toMatch(/^fw_/);
    const question = {
      messages: [{ role: "user", content: "hello there" }],
      max_completion_tokens: 12,
      temperature: 0,
    };
    const reply = await looseFetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(question),
    });
    const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] };
    const said = await run(
      ["chat", "--url", server.url, "--max-tokens", "12", "--temperature", "0", "hello", "there"],
      { FLYWHEEL_API_KEY: token },
    );
    expect(choices[0]!.message.content).not.toBe("");
    expect([said.code, said.out, said.err]).toEqual([0, `${choices[0]!.message.content}\n`, ""]);
    const list = await run(["tokens", "list", "--data", data, "--json"]);
    expect(JSON.parse(list.out)).toMatchObject([
      { name: "ci", scopes: ["inference"], state: expect.stringMatching(/^valid until/) },
    ]);
    expect(list.out).not.toContain(token.slice(12));
    expect((await run(["tokens", "revoke", "ci", "--data", data])).out).toMatch(/^revoked [0-9a-f]{8} \(ci\)/);
    const refused = await run(["chat", "--url", `${server.url}/v1`, "hi"], { FLYWHEEL_API_KEY: token });
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/401: The token was revoked/);
    expect((await run(["tokens", "revoke", "ci", "--data", data])).code).toBe(1);
    expect((await run(["tokens", "create", "--scope", "root", "--data", data])).err).toMatch(/unknown scope root/);
    for (const lifetime of ["soon", "00d", "1001y"]) {
      const refused = await run(["tokens", "create", "--lifetime", lifetime, "--data", data]);
      expect(refused.err, lifetime).toMatch(/lifetime looks like/);
    }
    const chat = ["chat", "--url", server.url, "--api-key", "k", "--max-tokens", "400", "hello"];
    const headed = spawn(process.execPath, [BIN, ...chat], { env: clean() });
    let complaint = "";
    headed.stderr.on("data", (bytes) => {
      complaint += bytes;
    });
    headed.stdout.once("data", () => headed.stdout.destroy());
    const code = await new Promise((resolve) => headed.on("exit", resolve));
    expect([code, complaint]).toEqual([0, ""]);
    expect((await run(["chat", "hi"])).err).toMatch(/a token is needed/);
    expect((await run(["chat", "--url", "http://127.0.0.1:1", "hi"], { FLYWHEEL_API_KEY: "x" })).err).toMatch(
      /cannot reach/,
    );
  }, 60_000);

  it("a conversation goes on after an error of the server, without the question that was refused", async () => {
    const asked: string[][] = [];
    const refusals = [null, "too long:\n  by 3 tokens", null, null];
    const server = createServer(async (request, response) => {
      const { messages } = (await json(request)) as { messages: { content: string }[] };
      asked.push(messages.map(({ content }) => content));
      const message = refusals[asked.length - 1];
      if (message) {
        response.writeHead(400).end(JSON.stringify({ error: { message } }));
        return;
      }
      response.write(`data: {"choices":[{"delta":{"content":"answer ${asked.length}"}}]}\n\n`);
      response.end(asked.length === 3 ? 'data: {"error":{"message":"it broke"}}\n\n' : "data: [DONE]\n\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const chat = execFile(process.execPath, [BIN, "chat", "--url", `http://127.0.0.1:${port}`, "--api-key", "k"], {
      env: clean(),
    });
    const [out, err] = [text(chat.stdout!), text(chat.stderr!)];
    chat.stdin!.end("one\ntwo\nthree\nfour\n");
    const code = await new Promise((resolve) => chat.on("exit", resolve));
    server.close();
    expect(asked).toEqual([
      ["one"],
      ["one", "answer 1", "two"],
      ["one", "answer 1", "three"],
      ["one", "answer 1", "four"],
    ]);
    expect(await err).toBe("flywheel: the server answered 400: too long: by 3 tokens\nflywheel: it broke\n");
    expect(await out).toBe("> answer 1\n> > answer 3\n> answer 4\n> \n");
    expect(code).toBe(1);
  }, 30_000);

  it("tokens are listed and revoked in a folder of a server only, which a wrong path does not become", async () => {
    const nowhere = join(fresh(), "typo");
    for (const command of [["list"], ["revoke", "ci"]]) {
      const { code, err } = await run(["tokens", ...command, "--data", nowhere]);
      expect([code, err]).toEqual([
        1,
        `flywheel: ${nowhere} is not the data directory of a server: it has no flywheel.db\n`,
      ]);
    }
    expect(existsSync(nowhere)).toBe(false);
  });

  it.each([
    [["chat", "--url", "127.0.0.1:8000", "hi"], "x", /--url expects something like http:.* not 127\.0\.0\.1:8000$/m],
    [["models", "--url", "localhost"], "x", /--url expects something like http:/],
    [["models"], "a\nb", /the token has characters that cannot be sent/],
    [["chat", "hi"], "ключ", /the token has characters that cannot be sent/],
    [["chat", "--temperature", "", "hi"], "x", /--temperature expects a number, not nothing/],
    [["train", BIN, "--model", "m", "--learning-rate", ""], "x", /--learning-rate expects a number, not nothing/],
  ])("a mistake in %j is not taken for a server that is away", async (args, key, message) => {
    const { code, err } = await run(args, { FLYWHEEL_API_KEY: key });
    expect(code).toBe(1);
    expect(err).toMatch(message);
  });
});
