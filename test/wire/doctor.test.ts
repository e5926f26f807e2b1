// `flywheel doctor` against a real server as the replica, which is healthy, and against replicas with one fault each.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { findModel, loadText } from "../../src/app/model-files.ts";
import { startServer } from "../../src/app/serve.ts";
import { checkAbort } from "../../src/cli/doctor/abort.check.ts";
import { checkAdapters } from "../../src/cli/doctor/adapters.check.ts";
import { Bench, type OurSide } from "../../src/cli/doctor/bench.ts";
import { checkDeterminism } from "../../src/cli/doctor/determinism.check.ts";
import { examine } from "../../src/cli/doctor/examine.ts";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import { identify } from "../../src/cli/doctor/identity.check.ts";
import { checkLaunchFlags } from "../../src/cli/doctor/launch-flags.check.ts";
import { checkLogprobs } from "../../src/cli/doctor/logprobs.check.ts";
import { Replica } from "../../src/cli/doctor/replica.ts";
import { checkStops } from "../../src/cli/doctor/stop.check.ts";
import { checkText } from "../../src/cli/doctor/text.check.ts";
import { loadConfig } from "../../src/config/load.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { type Fault, type FaultyReplica, startFaulty } from "../fakes/faulty-replica.ts";
import { fresh, MODEL, run } from "./cli-process.ts";
import { shared } from "./shared-server.ts";
import { API_KEY, type Loose } from "./test-server.ts";

const healthy = shared(() => {
  const config = { ...loadConfig({ env: {} }), model: MODEL, port: 0, apiKey: [API_KEY], logLevel: "error" as const };
  return startServer({ ...config, data: fresh(), training: false }, loadModel);
});

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

async function faulty(fault: Fault): Promise<FaultyReplica> {
  const replica = await startFaulty(healthy.url, fault);
  opened.push(replica);
  return replica;
}

async function ourSide(): Promise<OurSide> {
  const shape = readModelConfig(MODEL);
  const text = await loadText(MODEL, loadConfig({ env: {} }));
  opened.push(text);
  return {
    text,
    shape,
    eosTokenIds: shape.eosTokenIds,
    maxLogprobs: 20,
    maxLoraRank: 64,
    maxModelLen: 512,
    data: fresh(),
  };
}

/** The findings of one group of checks that are not ok, by name. */
async function complaints(group: (bench: Bench) => AsyncGenerator<Finding>, fault: Fault) {
  const replica = new Replica((await faulty(fault)).url, API_KEY);
  const bench = new Bench(replica, await ourSide(), { name: "qwen3", maxModelLen: 512, isFlywheel: false });
  const found: Record<string, string> = {};
  for await (const { check, status, detail, advice } of group(bench)) {
    if (status !== "ok") found[check] = `${status}: ${detail} → ${advice}`;
  }
  return found;
}

/** Changes the log-probabilities of a completion. */
function mapLogprobs(json: Loose, change: (logprob: number) => number): void {
  const { logprobs } = json.choices?.[0] ?? {};
  if (!logprobs) return;
  logprobs.token_logprobs = logprobs.token_logprobs.map(change);
  logprobs.top_logprobs = logprobs.top_logprobs.map((top: Record<string, number>) =>
    Object.fromEntries(Object.entries(top).map(([id, logprob]) => [id, change(logprob)])),
  );
}

const isProbe = (body: Loose) => String(body?.model).startsWith("flywheel-doctor-");

it("finds nothing wrong with a server of our own", async () => {
  const found: Finding[] = [];
  const replica = new Replica(`${healthy.url}/v1/`, API_KEY);
  const { served } = await examine(replica, await ourSide(), (finding) => found.push(finding));
  expect(found.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(found.length).toBeGreaterThan(25);
  const page = readFileSync(new URL("../../docs/reference/doctor.md", import.meta.url), "utf8");
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
  opened.push(server);
  const { folder } = await findModel(config, server.service.log);
  const text = await loadText(folder, config);
  opened.push(text);
  const ours = { ...(await ourSide()), text, shape: readModelConfig(folder) };
  const served = { name: "flywheel-mini", maxModelLen: 2048, isFlywheel: true };
  const found: Finding[] = [];
  for await (const finding of checkAdapters(new Bench(new Replica(server.url, API_KEY), ours, served)))
    found.push(finding);
  expect(found.map(({ check, status }) => [check, status])).toEqual([
    ["lora-load", "ok"],
    ["lora-effect", "ok"],
    ["lora-unload", "ok"],
  ]);
});

describe("names the fault of", () => {
  it("another tokenizer", async () => {
    const found = await complaints(checkText, {
      reply: (path, json, body) => {
        if (path === "/tokenize" && body.prompt?.includes("café")) json.tokens[2] += 1;
      },
    });
    expect(found).toEqual({ tokenizer: expect.stringMatching(/^wrong: 2 of \d+ encodings differ, first "naïve café/) });
  });

  it("another chat template", async () => {
    const found = await complaints(checkText, {
      reply: (path, json, body) => {
        if (path === "/tokenize" && body.messages?.[0].role === "system") json.tokens.shift();
      },
    });
    expect(found).toEqual({
      "chat-template": expect.stringMatching(/^warning: 2 of 7 prompts differ, first a system/),
    });
  });

  it("no runtime adapters", async () => {
    const found = await complaints(checkLaunchFlags, {
      request: (path) =>
        path === "/v1/load_lora_adapter" ? { status: 404, json: { detail: "Not Found" } } : undefined,
    });
    expect(found).toEqual({ "lora-routes": expect.stringMatching(/VLLM_ALLOW_RUNTIME_LORA_UPDATING=True/) });
  });

  it("missing flags", async () => {
    const refused = (message: string) => ({ status: 400, json: { error: { message } } });
    const found = await complaints(checkLaunchFlags, {
      request: (_, body) => {
        if (body.logprobs > 10)
          return refused("Requested sample logprobs of 20, which is greater than max allowed: 10");
        if (body.priority) return refused("Got priority 1 but Priority scheduling is not enabled.");
        body.temperature ??= 0.1;
        return undefined;
      },
      reply: (_, json) => {
        if (json.usage) json.usage.prompt_tokens_details = null;
      },
    });
    expect(found).toEqual({
      "prompt-details": expect.stringMatching(/^warning.*--enable-prompt-tokens-details/),
      "max-logprobs": expect.stringMatching(/^wrong: 20 are refused.*--max-logprobs 32/),
      priority: expect.stringMatching(/^warning.*--scheduling-policy priority/),
      "sampling-defaults": expect.stringMatching(/^warning.*--generation-config vllm/),
    });
  });

  it("no prefix cache", async () => {
    const found = await complaints(checkLaunchFlags, {
      reply: (_, json) => {
        if (json.usage) json.usage.prompt_tokens_details = { cached_tokens: 0 };
      },
    });
    expect(found).toEqual({ "prefix-cache": expect.stringMatching(/^warning.*--enable-prefix-caching/) });
  });

  it("log-probabilities after temperature", async () => {
    const found = await complaints(checkLogprobs, {
      reply: (_, json, body) => {
        if (body.temperature > 0) mapLogprobs(json, (logprob) => logprob / body.temperature);
      },
    });
    expect(found).toEqual({ "logprobs-temperature": expect.stringMatching(/^wrong.*--logprobs-mode raw_logprobs/) });
  });

  it("log-probabilities after penalties", async () => {
    const found = await complaints(checkLogprobs, {
      reply: (_, json, body) => {
        if (body.repetition_penalty > 1) mapLogprobs(json, (logprob) => logprob - 0.3);
      },
    });
    expect(found).toEqual({ "logprobs-penalties": expect.stringMatching(/^wrong.*change by 0\.30/) });
  });

  it("logits instead of log-probabilities", async () => {
    const found = await complaints(checkLogprobs, { reply: (_, json) => mapLogprobs(json, (logprob) => logprob + 12) });
    expect(found).toMatchObject({ logprobs: expect.stringMatching(/^wrong: these are no log-probabilities/) });
  });

  it("prompt log-probabilities of another model", async () => {
    const found = await complaints(checkLogprobs, {
      reply: (_, json) => {
        for (const entry of json.choices?.[0].prompt_logprobs ?? []) {
          for (const value of Object.values(entry ?? {}) as Loose[]) value.logprob -= 3;
        }
      },
    });
    expect(found).toEqual({
      "logprobs-prompt": expect.stringMatching(/^wrong: generated and prompt tokens differ by 3/),
    });
  });

  it("an end-of-sequence token that cannot be ignored", async () => {
    const found = await complaints(checkStops, {
      request: (_, body) => {
        body.ignore_eos = false;
        return undefined;
      },
    });
    expect(found).toMatchObject({ "ignore-eos": expect.stringMatching(/^wrong.*stop .*after 1 tokens/) });
  });

  it("stop ids and min_tokens without effect", async () => {
    const found = await complaints(checkStops, {
      request: (_, body) => {
        body.stop_token_ids = [];
        return undefined;
      },
    });
    expect(Object.keys(found)).toEqual(["stop-ids", "min-tokens", "eos-stop"]);
    expect(found["stop-ids"]).toMatch(/^wrong: stop id \d+ .* gives length/);
  });

  it("a stop_reason without the id", async () => {
    const found = await complaints(checkStops, {
      reply: (_, json) => {
        if (json.choices) json.choices[0].stop_reason = null;
      },
    });
    expect(Object.keys(found)).toEqual(["stop-ids", "eos-stop"]);
  });

  it("min_tokens without effect", async () => {
    const found = await complaints(checkStops, {
      request: (_, body) => {
        body.min_tokens = 0;
        return undefined;
      },
    });
    expect(found).toEqual({
      "min-tokens": expect.stringMatching(/^wrong: min_tokens \d+ with stop id \d+ gives stop/),
    });
  });

  it("different replies each time", async () => {
    let seed = 0;
    const found = await complaints(checkDeterminism, {
      request: (_, body) => {
        Object.assign(body, { temperature: 2, seed: ++seed });
        return undefined;
      },
    });
    expect(found.greedy).toMatch(/^wrong: token \d+ of a greedy reply is behind the best candidate/);
    expect(found.repeat).toMatch(/the same request twice gives other tokens/);
  });

  it("rounding that depends on the batch", async () => {
    let count = 0;
    const found = await complaints(checkDeterminism, {
      reply: (_, json) => mapLogprobs(json, (logprob) => logprob - 1e-5 * ++count),
    });
    expect(found.repeat).toMatch(/^warning: .* equal tokens; log-probabilities differ .*VLLM_BATCH_INVARIANT=1/);
  });

  it("a stream that loses tokens", async () => {
    const found = await complaints(checkDeterminism, {
      text: (_, text) => text.replace(/^data: .*\n\n/, ""),
    });
    expect(found).toEqual({ stream: expect.stringMatching(/^wrong: a stream carries 15 of 16 token ids/) });
  });

  it("adapters without effect", async () => {
    const found = await complaints(checkAdapters, {
      request: (_, body) => {
        if (isProbe(body) && body.prompt) body.model = "qwen3";
        return undefined;
      },
    });
    expect(found).toEqual({
      "lora-effect": expect.stringMatching(/^wrong: an adapter does not change the model/),
      "lora-unload": expect.stringMatching(/^warning: the name answers after it was unloaded/),
    });
  });

  it("adapters that are mixed up", async () => {
    const found = await complaints(checkAdapters, {
      request: (_, body) => {
        if (isProbe(body)) body.model = body.model.replace(/-b$/, "-a");
        return undefined;
      },
    });
    expect(found).toEqual({ "lora-effect": expect.stringMatching(/^wrong: two adapters answer alike/) });
  });

  it("a small --max-lora-rank", async () => {
    const found = await complaints(checkAdapters, {
      request: (path) =>
        path === "/v1/load_lora_adapter"
          ? { status: 400, json: { error: { message: "LoRA rank 64 is greater than max_lora_rank 16." } } }
          : undefined,
    });
    expect(found).toEqual({ "lora-load": expect.stringMatching(/^wrong.*--max-lora-rank 64/) });
  });

  it("a key that may not load adapters", async () => {
    const found = await complaints(checkAdapters, {
      request: (path) =>
        path === "/v1/load_lora_adapter"
          ? { status: 403, json: { error: { message: 'This route needs a token with the scope "admin".' } } }
          : undefined,
    });
    expect(found).toEqual({ "lora-load": expect.stringMatching(/^wrong.*--engine-api-key/) });
  });

  it("nobody when it cannot check the adapters of an unknown model", async () => {
    const found: Finding[] = [];
    const ours = { ...(await ourSide()), shape: null };
    const replica = new Replica(healthy.url, API_KEY);
    const bench = new Bench(replica, ours, { name: "qwen3", maxModelLen: 512, isFlywheel: true });
    for await (const finding of checkAdapters(bench)) found.push(finding);
    expect(found).toEqual([expect.objectContaining({ check: "lora-load", status: "warning" })]);
  });

  it("a data folder that the replica does not see", async () => {
    const found = await complaints(checkAdapters, {
      request: (_, body) => {
        if (body?.lora_path) body.lora_path = `/elsewhere${body.lora_path}`;
        return undefined;
      },
    });
    expect(found).toEqual({ "lora-load": expect.stringMatching(/^wrong.*Mount the data folder/) });
  });

  it("requests that outlive their connection", async () => {
    let streams = 0;
    const found = await complaints((bench) => checkAbort(bench, 500), {
      request: (_, body) => {
        if (body?.stream) streams += 1;
        return undefined;
      },
      text: (path, text) =>
        path === "/metrics" ? text.replace(/^(vllm:num_requests_running.*) \S+$/gm, `$1 ${streams}`) : text,
    });
    expect(found).toEqual({ abort: expect.stringMatching(/^wrong: 0.5 s after the connection was closed/) });
  });
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
    opened.push({ close: () => server.close() });
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
    expect(await run(["doctor"])).toMatchObject({ code: 1, err: expect.stringMatching("with --engine-url") });
  }, 30_000);
});
