// `flywheel run`, `status`, `doctor` on this machine, `serve --estimate`, and base models in the cache.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nativeModule, nativeModuleMissing } from "../../../src/graph/native/native-module.ts";
import { fresh, MODEL, run, serve } from "../../support/cli-process.ts";
import { startFakeHub } from "../../support/fake-hub.ts";

interface Check {
  check: string;
  status: string;
  detail: string;
  advice: string | null;
}

async function doctor(args: string[], env: NodeJS.ProcessEnv = {}) {
  const { code, out, err } = await run(["doctor", "--json", ...args], env);
  expect(err).toBe("");
  const { fit, machine } = JSON.parse(out) as { fit: boolean; machine: { checks: Check[] } };
  return { code, fit, find: (name: string) => machine.checks.find(({ check }) => check === name) };
}

describe("flywheel run", () => {
  it("serves, answers and leaves if nobody serves; else it asks the server that is there", async () => {
    const data = fresh();
    const options = ["--max-tokens", "4", "--temperature", "0", "--data", data];
    const alone = await run(["run", MODEL, "hello", "there", ...options, "--port", "0"]);
    expect(alone.code, alone.err).toBe(0);
    expect(alone.out.trim()).not.toBe("");
    expect(alone.err).toBe("");
    expect(existsSync(join(data, "local-key.json"))).toBe(false);

    const server = await serve([MODEL, "--port", "0", "--data", data]);
    expect(server.out()).toMatch(/^your first token, with every scope \(shown once\): fw_\S+$/m);
    for (const model of [MODEL, "qwen3"]) {
      expect(await run(["run", model, "hello", "there", ...options])).toEqual({ code: 0, out: alone.out, err: "" });
    }
    const other = await run(["run", "org/other", "hello", ...options]);
    expect(other.err).toMatch(/serves qwen3, not org\/other: stop it to serve another model/);
    expect((await run(["run", "What is it?", ...options])).err).toMatch(
      /the model comes before the question: flywheel run bundled/,
    );

    const state = await run(["status", "--data", data]);
    expect(state).toMatchObject({ code: 0, err: "" });
    expect(state.out).toContain(`server     ${server.url}, Flywheel `);
    expect(state.out).toContain(`, process ${server.process.pid}\n`);
    expect(state.out).toMatch(
      /^model +qwen3, .* parameters, int8\ncontext +512 tokens\nthreads +\d+\nrequests +0 running, /m,
    );
    expect(state.out).toMatch(/^key +local key, for inference, training, admin\nworkspace +default$/m);
    expect(state.out).toContain(`\ndata       ${data}: `);
    expect(state.out).toMatch(/^policies +0\njobs +0 running, 0 waiting$/m);
    const { machine, training } = JSON.parse((await run(["status", "--data", data, "--json"])).out);
    expect(machine).toMatchObject({ pid: server.process.pid, data: { folder: data } });
    expect(machine.checks.map(({ check }: Check) => check)).toEqual(["server", "key", "disk-data", "threads"]);
    expect(training).toMatchObject({ policies: [], servers: [{ address: server.url }] });
    const found = await doctor(["--data", data, "--model", MODEL]);
    expect(found.find("server")).toMatchObject({ status: "ok", detail: expect.stringContaining(server.url) });
    expect(found.find("key")).toMatchObject({ status: "ok" });
    expect(found.find("token")).toBeUndefined();
    const given = await doctor(["--data", data, "--model", MODEL], { FLYWHEEL_API_KEY: "old" });
    expect(given.fit).toBe(false);
    expect(given.find("token")).toMatchObject({ status: "wrong", advice: expect.stringMatching(/^Unset it/) });
  });
});

describe("flywheel doctor on this machine", () => {
  it("finds nothing wrong, and makes nothing", async () => {
    const data = join(fresh(), "new");
    const { code, fit, find } = await doctor(["--data", data, "--port", "0"]);
    expect([code, fit]).toEqual([0, true]);
    for (const check of ["versions", "runtime", "data", "port", "model", "threads"]) {
      expect(find(check), check).toMatchObject({ status: "ok", advice: null });
    }
    expect(existsSync(data)).toBe(false);
  });

  it("says whether the native kernels run, and why not", async () => {
    const options = ["--data", fresh(), "--port", "0"];
    const kernels = async (env: NodeJS.ProcessEnv) => (await doctor(options, env)).find("kernels");
    const native = { status: "ok", detail: expect.stringMatching(/^native/), advice: null };
    const graph = { status: "warning", detail: expect.stringContaining(nativeModuleMissing) };
    expect(await kernels({})).toMatchObject(nativeModule === null ? graph : native);
    expect(await kernels({ FLYWHEEL_KERNELS: "graph" })).toMatchObject({
      status: "warning",
      detail: expect.stringMatching(/FLYWHEEL_KERNELS is graph$/),
      advice: expect.stringMatching(/^See docs/),
    });
  });

  it("says what to change", async () => {
    const data = fresh();
    writeFileSync(join(data, "local-key.json"), "{}", { mode: 0o644 });
    const busy = await serve([MODEL, "--port", "0", "--data", fresh()]);
    const { code, fit, find } = await doctor([
      ...["--data", data, "--port", new URL(busy.url).port, "--model", "org/none"],
      ...["--threads", "1000", "--download-dir", fresh()],
    ]);
    expect([code, fit]).toEqual([1, false]);
    expect(find("key")).toMatchObject({ status: "wrong", detail: expect.stringMatching(/other users can read/) });
    expect(find("port")).toMatchObject({ status: "warning", advice: expect.stringMatching(/another --port/) });
    expect(find("model")).toMatchObject({ status: "warning", advice: "flywheel pull org/none" });
    expect(find("threads")).toMatchObject({ status: "warning", advice: expect.stringMatching(/^--threads \d+$/) });
    // status, where no server runs
    const place = { FLYWHEEL_DATA: fresh(), FLYWHEEL_PORT: new URL(busy.url).port };
    const none = await run(["status"], place);
    expect(none).toMatchObject({ code: 1, out: "" });
    expect(none.err).toMatch(/warning +port +another program listens on .*\n +→ Give serve another --port/);
    expect(none.err).toMatch(/^flywheel: .*no server of yours runs on .*Start one with `flywheel serve`/m);
    const broken = await doctor(["--data", fresh(), "--port", "0", "--model", fresh()]);
    expect(broken.find("model")).toMatchObject({ status: "wrong", detail: expect.stringMatching(/config\.json/) });
    const long = await doctor(["--data", fresh(), "--port", "0", "--model", MODEL, "--max-model-len", "1M"]);
    expect(long.find("model")).toMatchObject({
      status: "wrong",
      detail: expect.stringMatching(/is more than the model's 512 positions/),
      advice: "Give another --max-model-len, or leave it out.",
    });
  });
});

describe("base models", () => {
  const COMMIT = "a".repeat(40);

  /** A cache with one model in it, as the hub's tools lay it out. */
  function cacheWith(repository: string): string {
    const cache = fresh();
    const folder = join(cache, `models--${repository.replace("/", "--")}`);
    const [blobs, snapshot] = [join(folder, "blobs"), join(folder, "snapshots", COMMIT)];
    for (const path of [blobs, snapshot, join(folder, "refs")]) mkdirSync(path, { recursive: true });
    writeFileSync(join(folder, "refs/main"), COMMIT);
    for (const name of readdirSync(MODEL)) {
      cpSync(join(MODEL, name), join(blobs, name));
      symlinkSync(join(blobs, name), join(snapshot, name));
    }
    return cache;
  }

  it("cannot be in a file: every command says so in one line", async () => {
    const file = join(fresh(), "file");
    writeFileSync(file, "");
    const place = ["--download-dir", file];
    const line = /^flywheel: cannot read the cache folder .* \(ENOTDIR: .*\): choose another --download-dir\n$/;
    for (const command of [["list"], ["show", "org/m"], ["rm", "org/m"]]) {
      expect(await run([...command, ...place])).toMatchObject({ code: 1, out: "", err: expect.stringMatching(line) });
    }
    const { find } = await doctor(["--data", fresh(), "--port", "0", "--model", "org/m", ...place]);
    expect(find("model")).toMatchObject({ status: "wrong", detail: expect.stringMatching(/^cannot read the cache/) });
    expect(find("threads")).toBeDefined();
  });

  it("are pulled, and an estimate downloads no weights", async () => {
    const files = Object.fromEntries(readdirSync(MODEL).map((name) => [name, readFileSync(join(MODEL, name))]));
    const hub = await startFakeHub("org/small", files);
    try {
      const env = { HF_HUB_CACHE: fresh(), HF_ENDPOINT: hub.endpoint };
      const estimate = await run(["serve", "org/small", "--estimate"], env);
      expect(estimate.out).toMatch(/^model +org\/small\nfamily +qwen3/);
      expect(hub.requests.filter(({ path }) => path.includes("safetensors"))).toEqual([]);
      expect((await run(["list"], env)).out).toMatch(/org\/small .* incomplete: without model\.safetensors$/m);
      const pulled = await run(["pull", "org/small"], env);
      expect(pulled.code, pulled.err).toBe(0);
      expect(pulled.out).toMatch(/^org\/small is in .*snapshots/);
      expect((await run(["list"], env)).out).toMatch(/org\/small .* ready$/m);
    } finally {
      await hub.close();
    }
  });

  it("are listed, shown and removed, and an estimate reads no weights", async () => {
    const cache = cacheWith("org/small");
    const env = { HF_HUB_CACHE: cache };
    expect((await run(["list"], env)).out).toMatch(/org\/small +\S+ kB +qwen3 +float32 +512 +\S+ kB +ready$/m);
    const [row] = JSON.parse((await run(["list", "--json"], env)).out);
    expect(row).toMatchObject({ repository: "org/small", missing: [], plan: { family: "qwen3", contextTokens: 512 } });
    const shown = await run(["show", "org/small"], env);
    expect(shown.out).toMatch(/^family +qwen3, \S+ \S? ?parameters$/m);
    expect(shown.out).toMatch(/^memory .*: fits$/m);

    const estimate = await run(["serve", "org/small", "--estimate", "--dtype", "float32"], env);
    expect(estimate).toMatchObject({ code: 0, err: "" });
    expect(estimate.out).toMatch(/^weights .* as float32/m);
    const tooMuch = await run(["serve", "org/small", "--estimate", "--kv-cache-memory-bytes", "100000Gi"], env);
    expect(tooMuch.out).toMatch(/does not fit: try --dtype int4/);

    expect((await run(["rm", "org/small"], env)).out).toMatch(/^removed org\/small from .*: \S+ kB\n$/);
    expect(readdirSync(cache)).toEqual([]);
    expect((await run(["rm", "org/small"], env)).err).toMatch(/org\/small is not in .*`flywheel list`/);
    expect((await run(["show", "org/small"], env)).err).toMatch(/`flywheel pull org\/small` downloads it/);
    expect((await run(["list"], env)).out).toMatch(/no models in .*`flywheel pull org\/name`/);
  });
});
