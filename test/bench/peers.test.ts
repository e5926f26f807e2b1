// The peers that a reader names by --peer: a stand-in for llama.cpp's program, and a recorded session of Ollama's API.
import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { create as createBatchedBench } from "../../bench/contenders/llama-batched-bench.ts";
import { create as createOllama } from "../../bench/contenders/ollama.ts";
import { readFlags } from "../../bench/flags.ts";
import { entrantLabel, entrants } from "../../bench/plan.ts";

const folder = mkdtempSync(join(tmpdir(), "flywheel-peers-"));
const model = join(folder, "model.gguf");
writeFileSync(model, "weights");
afterAll(() => rmSync(folder, { recursive: true }));
const options = { model, precision: "int8", threads: 2, totalTokens: 100 } as const;

it("are entrants of a run only when they are named", () => {
  const names = (args: string[]) => {
    const { plan } = readFlags(["--precisions", "int8", ...args]);
    return entrants(plan, "int8").map(entrantLabel);
  };
  expect(names([])).not.toContain("llama-batched-bench q8_0");
  expect(names(["--engines", "flywheel", "--peer", "llama-batched-bench=/x", "--peer", "ollama=http://y"])).toEqual([
    "flywheel int8",
    "llama-batched-bench q8_0",
    "llama-batched-bench q8_0, plain attention",
    "ollama q8_0",
  ]);
  expect(() => readFlags(["--peer", "vllm=/x"])).toThrow('--peer takes llama-batched-bench or ollama, "=" and where');
  expect(() => readFlags(["--peer", "ollama"])).toThrow("--peer takes");
});

describe("llama-batched-bench", () => {
  const program = join(folder, "llama-batched-bench");
  const calls = join(folder, "calls");
  beforeAll(() => {
    // what the program of August 2026 prints, with the times of its arguments
    const script = `#!${process.execPath}
const { appendFileSync } = require("node:fs");
const args = process.argv.slice(2);
appendFileSync(${JSON.stringify(calls)}, args.join(" ") + "\\n");
const [pp, tg, pl] = ["-npp", "-ntg", "-npl"].map((flag) => Number(args[args.indexOf(flag) + 1]));
if (pp === 13) { console.error("failed to decode the batch"); process.exit(1); }
console.log("build: 1 (abc) for Linux");
console.log(JSON.stringify({ n_kv_max: 1, flash_attn: 1, pp, tg, pl, n_kv: 1, t_pp: 0.5, speed_pp: 1, t_tg: 2.0, speed_tg: 1, t: 1 }));
console.log("\\nllama_perf_context_print: load time = 1 ms");
`;
    writeFileSync(program, script);
    chmodSync(program, 0o755);
  });

  it("runs with the cell's sizes, and its own times count", async () => {
    const contender = await createBatchedBench({ ...options, program, flashAttention: false });
    expect(await contender.prefill([5, 6, 7])).toEqual({ tokens: 3, seconds: 0.5, cpuSeconds: Number.NaN });
    await contender.prepareDecode([1, 2, 3, 4], 16, 10);
    expect(await contender.decode()).toEqual({ tokens: 160, seconds: 2, cpuSeconds: Number.NaN });
    const [, prefill, decode] = readFileSync(calls, "utf8").split("\n");
    expect(prefill).toContain("-npp 3 -ntg 1 -npl 1 -c 64 -t 2 -tb 2 -pps -fa off");
    expect(decode).toContain("-npp 4 -ntg 10 -npl 16 -c 224");
  });

  it("fails with what the program said", async () => {
    const contender = await createBatchedBench({ ...options, program, flashAttention: true });
    await expect(contender.prefill(new Array(13).fill(1))).rejects.toThrow("failed to decode the batch");
  });
});

describe("Ollama", () => {
  const digest = `sha256:${createHash("sha256").update("weights").digest("hex")}`;
  const asked: { path: string; body: string }[] = [];
  /** Tokens that the next prompt counts instead of its own. */
  let counted: number | null = null;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push({ path: request.url!, body });
    if (request.url === `/api/blobs/${digest}`) return response.writeHead(201).end();
    if (request.url === "/api/create") return response.end('{"status":"success"}');
    const { prompt, options } = JSON.parse(body) as { prompt: string; options: { num_predict: number } };
    const line = { model: "m", created_at: "2026-11-01T10:00:00Z" };
    for (let i = 0; i < options.num_predict; i++) {
      response.write(`${JSON.stringify({ ...line, response: "t1", done: false })}\n`);
    }
    const [prompt_eval_count, eval_count] = [counted ?? prompt.split("t").length - 1, options.num_predict];
    const durations = { total_duration: 9e8, load_duration: 1e8, prompt_eval_duration: 25e7, eval_duration: 5e8 };
    const end = { response: "", done: true, done_reason: "length", prompt_eval_count, eval_count, ...durations };
    response.end(JSON.stringify({ ...line, ...end }));
  });
  let url: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it("gets the file once, prompts that it does not remember, and its own times count", async () => {
    const contender = await createOllama({ ...options, url });
    expect(asked.map(({ path }) => path)).toEqual([`/api/blobs/${digest}`, "/api/create"]);
    expect(asked[0]!.body).toBe("weights");
    expect(await contender.prefill([5, 6, 7])).toEqual({ tokens: 3, seconds: 0.25, cpuSeconds: Number.NaN });
    await contender.prepareDecode([1, 2, 3, 4], 2, 10);
    expect(await contender.decode()).toMatchObject({ tokens: 20, cpuSeconds: Number.NaN });
    const prompts = asked.slice(2).map(({ body }) => JSON.parse(body) as { prompt: string; options: object });
    expect(prompts.map(({ prompt }) => prompt)).toEqual(["t1t6t7", "t2t2t3t4", "t3t2t3t4"]);
    expect(prompts[1]!.options).toEqual({ num_predict: 11, temperature: 0, num_ctx: 100, num_thread: 2 });
  });

  it("does not count what is not the same prompt", async () => {
    const contender = await createOllama({ ...options, url });
    counted = 7;
    await expect(contender.prefill([1, 2])).rejects.toThrow("Ollama read 7 tokens of 2: not the same prompt");
    counted = null;
  });
});
