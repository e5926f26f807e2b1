// `flywheel doctor` against replicas with one fault each: it names the fault.
import { describe, expect, it } from "vitest";
import { checkAdapters } from "../../../src/cli/doctor/adapters.check.ts";
import { checkAbort, checkStops } from "../../../src/cli/doctor/ends.check.ts";
import type { Finding } from "../../../src/cli/doctor/finding.ts";
import { checkLaunchFlags } from "../../../src/cli/doctor/launch-flags.check.ts";
import { checkDeterminism, checkLogprobs } from "../../../src/cli/doctor/numbers.check.ts";
import { Bench, Replica } from "../../../src/cli/doctor/replica.ts";
import { checkText } from "../../../src/cli/doctor/text.check.ts";
import type { Fault } from "../../support/faulty-replica.ts";
import { API_KEY, type Loose } from "../../support/test-server.ts";
import { doctorReplicas } from "./doctor-replicas.ts";

const { healthy, faulty, ourSide } = doctorReplicas();

/** The findings of one group of checks that are not ok, by name. */
async function complaints(group: (bench: Bench) => AsyncGenerator<Finding>, fault: Fault) {
  const replica = new Replica((await faulty(fault)).url, API_KEY);
  const bench = await Bench.open(replica, await ourSide(), { name: "qwen3", maxModelLen: 512, isFlywheel: false });
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
    const bench = await Bench.open(replica, ours, { name: "qwen3", maxModelLen: 512, isFlywheel: true });
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
