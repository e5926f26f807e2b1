// `flywheel serve --device cpu-torch`: one command, with the model in a Python process. It is killed once.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { writeProbeAdapter } from "../../src/cli/doctor/adapters.check.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { fresh, MODEL, run, serve } from "../support/cli-process.ts";
import { needing, TORCH } from "../support/needs.ts";

const { it } = needing(TORCH);
const options = ["--model", MODEL, "--device", "cpu-torch", "--python", process.env.FLYWHEEL_TORCH_PYTHON ?? ""];

/** Ids of the children of a process that run this module. */
function childrenOf(pid: number, module: string): number[] {
  const lines = execFileSync("ps", ["-eo", "pid=,ppid=,args="]).toString().split("\n");
  const found = lines.map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)).filter((match) => match !== null);
  return found
    .filter(([, , parent, args]) => Number(parent) === pid && args!.includes(module))
    .map(([, id]) => Number(id));
}

it("serves completions, chats with a schema and adapters, and goes on after a kill", async () => {
  const data = fresh();
  const adapter = join(data, "probe");
  writeProbeAdapter(adapter, readModelConfig(MODEL), 4, 1);
  const server = await serve([
    ...options,
    "--port",
    "0",
    "--data",
    data,
    "--kv-cache-memory-bytes",
    "16Mi",
    "--queue-timeout",
    "600",
  ]);
  const token = /Authorization: (Bearer \S+?)'/.exec(server.out())![1]!;
  const post = async (path: string, body: object) => {
    const headers = { authorization: token, "content-type": "application/json" };
    const response = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return text.startsWith("{") ? JSON.parse(text) : text;
  };
  const complete = async (model: string) => {
    const body = { model, prompt: "Once upon", max_tokens: 8, temperature: 1, seed: 3, logprobs: 2, ignore_eos: true };
    const { choices } = await post("/v1/completions", body);
    expect(choices[0].logprobs.token_logprobs).toHaveLength(8);
    return choices[0].logprobs.token_logprobs as number[];
  };
  await post("/v1/load_lora_adapter", { lora_name: "probe", lora_path: adapter });
  const before = [await complete("qwen3"), await complete("probe")];
  expect(before[0]).not.toEqual(before[1]);
  const schema = {
    type: "object",
    properties: { yes: { type: "boolean" } },
    required: ["yes"],
    additionalProperties: false,
  };
  const { choices } = await post("/v1/chat/completions", {
    ...{ model: "qwen3", messages: [{ role: "user", content: "Hi" }], max_tokens: 40, seed: 1 },
    response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
  });
  expect(typeof JSON.parse(choices[0].message.content).yes).toBe("boolean");
  const [python] = childrenOf(server.process.pid!, "flywheel_gpu");
  process.kill(python!, "SIGKILL");
  await expect.poll(() => childrenOf(server.process.pid!, "flywheel_gpu").some((pid) => pid !== python)).toBe(true);
  expect([await complete("qwen3"), await complete("probe")]).toEqual(before);
  server.process.kill("SIGTERM");
  expect(await server.exit).toBe(0);
  const [next] = childrenOf(1, "flywheel_gpu");
  expect(next).toBeUndefined();
});

it("is examined by the doctor", async () => {
  const { code, out } = await run(["doctor", ...options, "--data", fresh()]);
  expect(out).toMatch(/torch\s+\d+\.\d+/);
  expect(code).toBe(0);
  const missing = await run([
    "doctor",
    "--model",
    MODEL,
    "--device",
    "cuda",
    "--python",
    "/nowhere/python3",
    "--data",
    fresh(),
  ]);
  expect(missing.out).toContain("--python /nowhere/python3: there is no such program");
  expect(missing.code).toBe(1);
});
