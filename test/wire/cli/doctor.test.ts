// `flywheel doctor` against a real server, which is healthy; what it says of versions and keys; its command line.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { loadModel } from "../../../src/app/load-model.ts";
import { findModel, loadText } from "../../../src/app/model-files.ts";
import { startServer } from "../../../src/app/serve.ts";
import { checkAdapters } from "../../../src/cli/doctor/adapters.check.ts";
import { examine, identify } from "../../../src/cli/doctor/doctor.ts";
import type { Finding } from "../../../src/cli/doctor/finding.ts";
import { Bench, Replica } from "../../../src/cli/doctor/replica.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readModelConfig } from "../../../src/model/checkpoint/model-config.ts";
import { fresh, MODEL, run } from "../../support/cli-process.ts";
import type { Fault } from "../../support/faulty-replica.ts";
import { API_KEY, type Loose } from "../../support/test-server.ts";
import { doctorReplicas } from "./doctor-replicas.ts";

const { healthy, faulty, ourSide, closeLater } = doctorReplicas();

it("finds nothing wrong with a server of our own", async () => {
  const found: Finding[] = [];
  const replica = new Replica(`${healthy.url}/v1/`, API_KEY);
  const { served } = await examine(replica, await ourSide(), (finding) => found.push(finding));
  expect(found.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(found.length).toBeGreaterThan(25);
  const page = readFileSync(new URL("../../../docs/reference/doctor.md", import.meta.url), "utf8");
  expect(found.filter(({ check }) => !page.includes(`\`${check}\``))).toEqual([]);
  expect(served).toEqual({ name: "qwen3", maxModelLen: 512, isFlywheel: true });
  const models = await (
    await fetch(`${healthy.url}/v1/models`, { headers: { authorization: `Bearer ${API_KEY}` } })
  ).json();
  expect((models as Loose).data.map(({ id }: Loose) => id)).toEqual(["qwen3"]);
});

it("sees that adapters change a model that is sure of its replies", async () => {
  const config = {
    ...loadConfig({ env: {} }),
    port: 0,
    apiKey: [API_KEY],
    logLevel: "error" as const,
    training: false,
  };
  const server = await startServer({ ...config, data: fresh() }, loadModel);
  closeLater(server);
  const { folder } = await findModel(config, server.service.log);
  const text = await loadText(folder, config);
  closeLater(text);
  const ours = { ...(await ourSide()), text, shape: readModelConfig(folder) };
  const served = { name: "flywheel-mini", maxModelLen: 2048, isFlywheel: true };
  const found: Finding[] = [];
  for await (const finding of checkAdapters(await Bench.open(new Replica(server.url, API_KEY), ours, served)))
    found.push(finding);
  expect(found.map(({ check, status }) => [check, status])).toEqual([
    ["lora-load", "ok"],
    ["lora-effect", "ok"],
    ["lora-unload", "ok"],
  ]);
});

describe("the identity of a replica", () => {
  async function identified(fault: Fault, key = API_KEY) {
    const { findings, served } = await identify(new Replica((await faulty(fault)).url, key), 512);
    return { bad: findings.filter(({ status }) => status !== "ok"), served };
  }
  const asVllm: Fault["reply"] = (path, json) => {
    if (path === "/v1/models") json.data[0].owned_by = "vllm";
  };
  const versioned = (version: string): Fault => ({
    reply: (path, json, body) => {
      asVllm(path, json, body);
      if (path === "/version") json.version = version;
    },
  });

  it.each(["0.17.0", "0.27.1+cpu", "0.28.0rc2.dev3", "1.0.0"])("takes vLLM %s", async (version) => {
    expect((await identified(versioned(version))).bad).toEqual([]);
  });

  it("refuses a version before 0.17", async () => {
    const { bad } = await identified(versioned("0.16.3"));
    expect(bad).toEqual([expect.objectContaining({ check: "version", status: "wrong", detail: "vLLM 0.16.3" })]);
  });

  it("asks for the key", async () => {
    const { bad, served } = await identified({}, "not the key");
    expect(bad).toEqual([
      expect.objectContaining({ check: "api-key", advice: expect.stringMatching("--engine-api-key") }),
    ]);
    expect(served).toBeNull();
  });

  it("warns of a shorter context", async () => {
    const { bad, served } = await identified({
      reply: (path, json) => {
        if (path === "/v1/models") json.data[0].max_model_len = 128;
      },
    });
    expect(bad).toEqual([expect.objectContaining({ check: "model", status: "warning" })]);
    expect(served).toMatchObject({ maxModelLen: 128 });
  });

  it.each([
    ["without token ids", (json: Loose) => delete json.choices[0].token_ids],
    ["with strange choices", (json: Loose) => Object.assign(json, { choices: "none" })],
    ["with text for ids", (json: Loose) => Object.assign(json.choices[0], { token_ids: ["a"] })],
  ])("refuses a foreign server politely: replies %s", async (_, change) => {
    const { bad, served } = await identified({
      reply: (path, json) => {
        if (path === "/v1/completions") change(json);
      },
    });
    expect(bad).toEqual([
      expect.objectContaining({ check: "token-ids", status: "wrong", advice: expect.stringMatching("vLLM 0.17") }),
    ]);
    expect(served).toBeNull();
  });

  it("does not trip over a server that answers with anything", async () => {
    const server = createServer((_, response) => response.end("[".repeat(10_000)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closeLater({ close: () => server.close() });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { findings, served } = await examine(new Replica(url, null), await ourSide(), () => {});
    expect(findings).toEqual([expect.objectContaining({ check: "models", status: "wrong" })]);
    expect(served).toBeNull();
  });
});

describe("the command", () => {
  const flags = (url: string) => [
    "doctor",
    "--model",
    MODEL,
    "--data",
    fresh(),
    "--max-model-len",
    "512",
    "--engine-url",
    url,
  ];

  it("prints a line for each check and exits with 0", async () => {
    const { code, out } = await run(flags(healthy.url), { FLYWHEEL_ENGINE_API_KEY: API_KEY });
    expect(out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n {2}ok {7}version {14}Flywheel/);
    expect(out).toMatch(/\n {2}\d+ ok, 0 warning, 0 wrong\n$/);
    expect(code).toBe(0);
  }, 30_000);

  it("prints JSON and exits with 1 if anything is wrong, with several replicas", async () => {
    const { url } = await faulty({
      request: (path) =>
        path === "/v1/load_lora_adapter" ? { status: 404, json: { detail: "Not Found" } } : undefined,
    });
    const { code, out } = await run([...flags(url), "http://127.0.0.1:9", "--engine-api-key", API_KEY, "--json"]);
    const { fit, replicas } = JSON.parse(out);
    expect(fit).toBe(false);
    expect(
      replicas.map((replica: Loose) => replica.checks.filter(({ status }: Loose) => status === "wrong").length),
    ).toEqual([2, 1]);
    expect(code).toBe(1);
  }, 60_000);

  it("says when nothing listens, or the URL is none", async () => {
    const nothing = await run(flags("http://127.0.0.1:9"));
    expect(nothing.out).toMatch(/wrong {4}reach .*no answer: /);
    expect(nothing.code).toBe(1);
    const typo = await run(flags("10.0.0.5:8000"));
    expect(typo).toMatchObject({ code: 1, err: expect.stringMatching("--engine-url must look like http://") });
  }, 30_000);
});
