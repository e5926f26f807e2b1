import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FakeHub, gitId, startFakeHub } from "../../../test/support/fake-hub.ts";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { type DownloadProgress, type HubOptions, resolveModel } from "./hub.ts";
import { HubError, hubCacheFolder } from "./hub-cache.ts";

const repository = "some-org/tiny.Model-1";
const fixture = (name: string) => readFileSync(`test/fixtures/llama/${name}`);
const weights = fixture("model.safetensors");
const weightsHash = createHash("sha256").update(weights).digest("hex");

let hub: FakeHub;
let root: string;
let repositoryFolder: string;
let options: HubOptions & { env: Record<string, string> };

beforeEach(async () => {
  hub = await startFakeHub(repository, {
    "model.safetensors": weights,
    "consolidated.safetensors": "a second copy nobody needs",
    "pytorch_model.bin": "a third",
    "README.md": "# Tiny",
    "config.json": fixture("config.json"),
    "tokenizer.json": fixture("tokenizer.json"),
    "tokenizer_config.json": fixture("tokenizer_config.json"),
    "chat_template.jinja": "{{ messages }}",
  });
  root = mkdtempSync(join(tmpdir(), "hub-"));
  repositoryFolder = join(root, "models--some-org--tiny.Model-1");
  options = { env: { HF_HUB_CACHE: root, HF_ENDPOINT: hub.endpoint }, retryDelayMs: 1 };
});
afterEach(async () => {
  vi.restoreAllMocks();
  await hub.close();
  rmSync(root, { recursive: true });
});

const snapshot = () => join(repositoryFolder, "snapshots", hub.commit);
const downloads = () => hub.requests.filter(({ origin }) => origin === "cdn");
const blobs = () => (existsSync(join(repositoryFolder, "blobs")) ? readdirSync(join(repositoryFolder, "blobs")) : []);

/** The rejection of resolving, which must be a HubError. */
async function refusal(model = repository): Promise<string> {
  const error = await resolveModel(model, options).then(
    () => new Error("resolved"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HubError);
  return (error as Error).message;
}

describe("folders", () => {
  test("a folder that exists is taken as it is", async () => {
    expect(await resolveModel("test/fixtures/llama", options)).toEqual({ folder: "test/fixtures/llama", origin: null });
    expect(hub.requests).toEqual([]);
  });

  test.each([
    "./nowhere",
    "/no/such/folder",
    "one-word",
    "a/b/c",
    "../x/y",
    "./package.json/x",
    `./${"x".repeat(5000)}`,
    "a/b@../../c",
    "a/..",
    "a//b",
    "a/b\0",
    "",
    "a/b@",
  ])("%j is neither a folder nor a hub name", async (model) => {
    expect(await refusal(model)).toMatch(/is neither a folder that exists nor a model on the hub/);
    expect(hub.requests).toEqual([]);
  });
});

test.each(["/models/llama.Q4_K_M.gguf", "models/llama.GGUF"])("%j is told apart from a hub name", async (model) => {
  expect(await refusal(model)).toMatch(/is a GGUF file: give the path of one that exists/);
  expect(hub.requests).toEqual([]);
});

describe("a fresh download", () => {
  test("fills the cache in its standard layout with the files serving needs, and can be opened", async () => {
    const resolved = await resolveModel(repository, options);
    expect(resolved).toEqual({ folder: snapshot(), origin: { repository, revision: "main", commit: hub.commit } });
    expect(readdirSync(snapshot()).sort()).toEqual(
      ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"].sort(),
    );
    expect(readlinkSync(join(snapshot(), "model.safetensors"))).toBe(`../../blobs/${weightsHash}`);
    expect(readlinkSync(join(snapshot(), "config.json"))).toBe(`../../blobs/${gitId(fixture("config.json"))}`);
    expect(readFileSync(join(repositoryFolder, "refs", "main"), "utf8")).toBe(hub.commit);
    expect(blobs().length).toBe(5);
    openCheckpoint(resolved.folder).close();
    // Weights last: where they are, the rest is.
    expect(downloads().at(-1)!.path).toBe("/model.safetensors");
  });

  test("is used without the network from then on", async () => {
    await resolveModel(repository, options);
    await hub.close();
    hub.requests.length = 0;
    expect((await resolveModel(repository, options)).folder).toBe(snapshot());
    expect((await resolveModel(`${repository}@${hub.commit}`, options)).folder).toBe(snapshot());
    options.env.HF_HUB_OFFLINE = "1";
    expect((await resolveModel(repository, options)).folder).toBe(snapshot());
    expect(hub.requests).toEqual([]);
  });

  test("reports bytes per file, ending at the total once", async () => {
    const seen: DownloadProgress[] = [];
    await resolveModel(repository, { ...options, onProgress: (progress) => seen.push(progress) });
    const ends = seen.filter(({ done, total }) => done === total).map(({ file }) => file);
    expect(ends.length).toBe(5);
    expect(new Set(ends).size).toBe(5);
    expect(seen.filter(({ done, total }) => done < 0 || done > total)).toEqual([]);
    expect(seen.at(-1)).toEqual({ file: "model.safetensors", done: weights.length, total: weights.length });
  });

  test("is whole where one call to the disk writes a part only", async () => {
    const handle = await open(join(root, "probe"), "w");
    const files: Pick<FileHandle, "write"> = Object.getPrototypeOf(handle);
    await handle.close();
    const write = files.write as (...at: [Uint8Array, number, number, number]) => Promise<{ bytesWritten: number }>;
    const written = vi.spyOn(files, "write").mockImplementation(function (this: FileHandle, ...call: unknown[]) {
      const [bytes, from, length, position] = call as [Uint8Array, number, number, number];
      return write.call(this, bytes, from, Math.ceil(length / 3), position) as ReturnType<FileHandle["write"]>;
    } as FileHandle["write"]);
    await resolveModel(repository, options);
    expect(written.mock.calls.length).toBeGreaterThan(downloads().length);
    expect(readFileSync(join(snapshot(), "model.safetensors"))).toEqual(weights);
  });

  test("sends the token to the hub, and not to where it redirects", async () => {
    options.env.HF_TOKEN = "hf_secret";
    await resolveModel(repository, options);
    const tokens = (origin: string) =>
      new Set(hub.requests.filter((r) => r.origin === origin).map((r) => r.authorization));
    expect([...tokens("hub")]).toEqual(["Bearer hf_secret"]);
    expect([...tokens("cdn")]).toEqual([undefined]);
  });

  test("fetches the shards an index lists, and only those", async () => {
    hub.files.delete("model.safetensors");
    hub.files.set("model-00001-of-00001.safetensors", weights);
    const map = Object.fromEntries(
      ["model.norm.weight", "model.embed_tokens.weight"].map((name) => [name, "model-00001-of-00001.safetensors"]),
    );
    hub.files.set("model.safetensors.index.json", Buffer.from(JSON.stringify({ weight_map: map })));
    const { folder } = await resolveModel(repository, options);
    expect(readdirSync(folder)).toContain("model-00001-of-00001.safetensors");
    expect(readdirSync(folder)).not.toContain("consolidated.safetensors");
    rmSync(join(folder, "model-00001-of-00001.safetensors"));
    options.env.HF_HUB_OFFLINE = "yes";
    expect(await refusal()).toMatch(/incomplete \(without model-00001-of-00001.safetensors\)/);
  });

  test("an index that points outside the folder is refused", async () => {
    hub.files.delete("model.safetensors");
    const index = { weight_map: { "model.norm.weight": "../../../evil.safetensors" } };
    hub.files.set("model.safetensors.index.json", Buffer.from(JSON.stringify(index)));
    await expect(resolveModel(repository, options)).rejects.toThrow(/not a plain file name/);
  });

  test("two at once download every file once", async () => {
    const [a, b] = await Promise.all([resolveModel(repository, options), resolveModel(repository, options)]);
    expect(a).toEqual(b);
    expect(downloads().length).toBe(5);
    expect(blobs().length).toBe(5);
  });
});

describe("interruptions", () => {
  test("a broken connection is continued where it broke", async () => {
    hub.faults.cut = { after: 100_000, times: 2 };
    const { folder } = await resolveModel(repository, options);
    expect(readFileSync(join(folder, "model.safetensors")).equals(weights)).toBe(true);
    const ranges = downloads()
      .filter(({ path }) => path === "/model.safetensors")
      .map(({ range }) => range);
    expect(ranges.length).toBe(3);
    expect(ranges[0]).toBeUndefined();
    const [second, third] = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-$/.exec(range!)![1]));
    expect(second).toBeGreaterThan(0);
    expect(third).toBeGreaterThan(second!);
  });

  test("a stopped process leaves a part that the next one continues", async () => {
    const controller = new AbortController();
    const onProgress = ({ file, done }: DownloadProgress) => {
      if (file === "model.safetensors" && done > 0) controller.abort(new Error("stopped"));
    };
    await expect(resolveModel(repository, { ...options, onProgress, signal: controller.signal })).rejects.toThrow(
      "stopped",
    );
    const part = readFileSync(join(repositoryFolder, "blobs", `${weightsHash}.incomplete`));
    expect(part.length).toBeGreaterThan(0);
    expect(part.equals(weights.subarray(0, part.length))).toBe(true);
    expect(existsSync(join(snapshot(), "model.safetensors"))).toBe(false);
    expect(existsSync(join(repositoryFolder, "refs", "main"))).toBe(false);
    hub.requests.length = 0;
    const { folder } = await resolveModel(repository, options);
    expect(downloads()).toEqual([{ origin: "cdn", path: "/model.safetensors", range: `bytes=${part.length}-` }]);
    expect(readFileSync(join(folder, "model.safetensors")).equals(weights)).toBe(true);
    expect(blobs().filter((name) => name.includes("incomplete"))).toEqual([]);
  });

  test.each(["damaged", "too long"])("a left-over part that is %s is fetched anew", async (kind) => {
    const part = kind === "damaged" ? Buffer.alloc(5000, 7) : Buffer.alloc(weights.length + 1);
    mkdirSync(join(repositoryFolder, "blobs"), { recursive: true });
    writeFileSync(join(repositoryFolder, "blobs", `${weightsHash}.incomplete`), part);
    const { folder } = await resolveModel(repository, options);
    expect(readFileSync(join(folder, "model.safetensors")).equals(weights)).toBe(true);
  });

  test("a server without ranges sends it whole again", async () => {
    hub.faults.cut = { after: 100_000, times: 1 };
    hub.faults.ignoreRanges = true;
    const { folder } = await resolveModel(repository, options);
    expect(readFileSync(join(folder, "model.safetensors")).equals(weights)).toBe(true);
  });

  test("a connection that never gets further is given up, the part kept", async () => {
    hub.faults.cut = { after: 0, times: 1000 };
    expect(await refusal()).toMatch(/the connection keeps failing; the bytes received are kept/);
    hub.faults = { fileStatus: 503 };
    expect(await refusal()).toMatch(/answered with status 503; the bytes received are kept/);
  });

  test("the lock of a process that died is taken over", async () => {
    mkdirSync(join(repositoryFolder, "blobs"), { recursive: true });
    const lock = join(repositoryFolder, "blobs", `${weightsHash}.incomplete.lock`);
    writeFileSync(lock, "");
    const longAgo = new Date(Date.now() - 120_000);
    utimesSync(lock, longAgo, longAgo);
    await resolveModel(repository, options);
    expect(existsSync(lock)).toBe(false);
  });
});

describe("wrong content", () => {
  test.each<[string, string, (body: Buffer) => Buffer]>([
    [
      "model.safetensors",
      "one byte changed",
      (body) => Buffer.concat([body.subarray(0, -1), Buffer.of(body.at(-1)! ^ 1)]),
    ],
    ["tokenizer.json", "one byte changed", (body) => Buffer.concat([Buffer.of(32), body.subarray(1)])],
    ["model.safetensors", "longer than announced", (body) => Buffer.concat([body, Buffer.of(0)])],
  ])("%s with %s is not stored and not visible", async (name, _, change) => {
    hub.faults.damage = (file, body) => (file === name ? change(body) : body);
    expect(await refusal()).toMatch(
      new RegExp(`downloading ${name} of .*does not match its checksum [0-9a-f]+; it was not stored`),
    );
    expect(existsSync(join(snapshot(), name))).toBe(false);
    expect(existsSync(join(repositoryFolder, "refs", "main"))).toBe(false);
    hub.faults = {};
    const { folder } = await resolveModel(repository, options);
    expect(readFileSync(join(folder, name)).equals(hub.files.get(name)!)).toBe(true);
  });
});

describe("refusals that explain themselves", () => {
  test("401, 403, 404 and others", async () => {
    hub.faults.apiStatus = 401;
    expect(await refusal()).toMatch(/some-org\/tiny.Model-1 does not exist or needs a token: set HF_TOKEN/);
    options.env.HF_TOKEN = "some-token";
    expect(await refusal()).toMatch(/the token in HF_TOKEN does not open it/);
    expect(await refusal()).not.toContain("some-token");
    hub.faults.apiStatus = 403;
    expect(await refusal()).toMatch(new RegExp(`conditions are at ${hub.endpoint}/some-org`));
    hub.faults.apiStatus = 418;
    expect(await refusal()).toMatch(/refused .* with status 418/);
    hub.faults = {};
    expect(await refusal(`${repository}@nowhere`)).toMatch(
      /some-org\/tiny.Model-1@nowhere does not exist at .*check the name/,
    );
    expect(await refusal("other/model")).toMatch(/other\/model does not exist at/);
    hub.faults = { fileStatus: 403 };
    expect(await refusal()).toMatch(/downloading .*json of .* answered with status 403/);
  });

  test("offline, unreachable: the cache folder is named", async () => {
    options.env.HF_HUB_OFFLINE = "1";
    expect(await refusal()).toBe(
      `some-org/tiny.Model-1 is not in the cache folder ${root}, and HF_HUB_OFFLINE forbids downloading it`,
    );
    expect(hub.requests).toEqual([]);
    mkdirSync(join(repositoryFolder, "refs", "pr"), { recursive: true }); // of pr/1, say
    expect(await refusal(`${repository}@pr`)).toMatch(/@pr is not in the cache folder/);
    delete options.env.HF_HUB_OFFLINE;
    await hub.close();
    const message = await refusal();
    expect(message).toContain(root);
    expect(message).toMatch(/127.0.0.1:\d+ cannot be reached \(ECONNREFUSED\)/);
  });

  test("a repository without usable files", async () => {
    hub.files.delete("model.safetensors");
    hub.files.delete("consolidated.safetensors");
    expect(await refusal()).toMatch(/has no model.safetensors or .*index.json \(it has pytorch_model.bin\)/);
    hub.files.delete("config.json");
    expect(await refusal()).toMatch(/has no config.json, so it is not a transformers model/);
  });

  test("a cache folder that cannot be written", async () => {
    writeFileSync(repositoryFolder, "a file in the way");
    expect(await refusal()).toMatch(/storing .* in .*models--some-org--tiny.Model-1: /);
  });
});

test("the environment decides where the cache is", () => {
  expect(hubCacheFolder({ HF_HUB_CACHE: "/a", HF_HOME: "/b" })).toBe("/a");
  expect(hubCacheFolder({ HF_HOME: "/b" })).toBe("/b/hub");
  expect(hubCacheFolder({ HF_HOME: "~/models" })).toBe(join(homedir(), "models", "hub"));
  expect(hubCacheFolder({ XDG_CACHE_HOME: "/c" })).toBe("/c/huggingface/hub");
  expect(hubCacheFolder({})).toBe(join(homedir(), ".cache", "huggingface", "hub"));
});
