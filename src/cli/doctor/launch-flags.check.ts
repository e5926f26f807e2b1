// Looks for the flags of the recommended launch line by what the replica does, because vLLM does not list its flags.

import { type Finding, ok, warning, wrong } from "./finding.ts";
import { type Bench, type Completion, ReplicaError } from "./replica.ts";

/** The line that `flywheel doctor` prints when a flag is missing. */
export function launchLine({ served, ours }: Pick<Bench, "served" | "ours">): string {
  return [
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL",
    `--served-model-name ${served.name}`,
    "--generation-config vllm",
    `--enable-lora --max-loras 8 --max-cpu-loras 64 --max-lora-rank ${vllmRank(ours.maxLoraRank)}`,
    "--enable-prefix-caching --enable-prompt-tokens-details",
    "--scheduling-policy priority",
    `--max-logprobs ${Math.max(32, ours.maxLogprobs)} --logprobs-mode raw_logprobs`,
    "--api-key KEY --host PRIVATE_ADDRESS --port 8000",
  ].join(" \\\n    ");
}

/** vLLM takes only these ranks. */
const VLLM_RANKS = [1, 8, 16, 32, 64, 128, 256, 320, 512];

export function vllmRank(rank: number): number {
  return VLLM_RANKS.find((candidate) => candidate >= rank) ?? VLLM_RANKS.at(-1)!;
}

export async function* checkLaunchFlags(bench: Bench): AsyncGenerator<Finding> {
  yield await runtimeAdapters(bench);
  yield* promptDetails(bench);
  yield await maxLogprobs(bench);
  yield await priority(bench);
  yield await samplingDefaults(bench);
}

/** An empty request tells whether the route exists. Loading comes later (adapters.check.ts). */
async function runtimeAdapters({ replica }: Bench): Promise<Finding> {
  const { status } = await replica.post("/v1/load_lora_adapter", {});
  if (status !== 404 && status !== 405) return ok("lora-routes", "adapters can be loaded while it runs");
  const advice =
    "Start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True. Without them there are no policies.";
  return wrong("lora-routes", `/v1/load_lora_adapter answers ${status}`, advice);
}

/** Sends the same long prompt twice. */
async function* promptDetails({ replica, served, prompt }: Bench): AsyncGenerator<Finding> {
  const length = Math.min(600, Math.floor(served.maxModelLen * 0.75));
  const long = Array.from({ length }, (_, i) => prompt[i % prompt.length]!);
  await replica.complete(served.name, long, { max_tokens: 1 });
  const { cachedTokens } = await replica.complete(served.name, long, { max_tokens: 1 });
  if (cachedTokens === null) {
    const advice = "Start vLLM with --enable-prompt-tokens-details. Without it usage cannot show cached tokens.";
    yield warning("prompt-details", "usage has no cached_tokens", advice);
  } else {
    yield ok("prompt-details", `usage tells cached tokens: ${cachedTokens} of ${length}`);
  }
  if (cachedTokens === 0) {
    const advice = "Start vLLM with --enable-prefix-caching. Groups of rollouts share their prompt.";
    yield warning("prefix-cache", "a repeated prompt is computed again", advice);
  }
}

async function maxLogprobs(bench: Bench): Promise<Finding> {
  const count = bench.ours.maxLogprobs;
  if (count < 0) return ok("max-logprobs", "not checked: --max-logprobs -1 asks for the whole vocabulary");
  const refusal = await refusalOf(() => bench.complete({ max_tokens: 1, logprobs: count }));
  if (refusal === null) return ok("max-logprobs", `${count} log-probabilities per token`);
  const advice = `Start vLLM with --max-logprobs ${Math.max(32, count)}, or Flywheel with a smaller --max-logprobs.`;
  return wrong("max-logprobs", `${count} are refused: ${refusal}`, advice);
}

async function priority(bench: Bench): Promise<Finding> {
  const refusal = await refusalOf(() => bench.complete({ max_tokens: 1, priority: 1 }));
  if (refusal === null) return ok("priority", "requests may have a priority");
  const advice = "Start vLLM with --scheduling-policy priority. Without it Flywheel refuses priorities.";
  return warning("priority", refusal, advice);
}

/** With neutral defaults, a request without sampling fields samples what explicit neutral fields with the same seed do. */
async function samplingDefaults(bench: Bench): Promise<Finding> {
  const seeded = { seed: 7, max_tokens: 24 };
  const explicit = await bench.complete({ ...seeded, temperature: 1 });
  const absent = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"].map((name) => [name, undefined]);
  const defaults = await bench.complete({ ...seeded, ...Object.fromEntries(absent) });
  const isSame = defaults.tokenIds.join() === explicit.tokenIds.join();
  if (isSame) return ok("sampling-defaults", "fields that are left out are neutral");
  const advice =
    "Start vLLM with --generation-config vllm. Flywheel sends every field, so its own replies are right either way.";
  return warning("sampling-defaults", "the replica has sampling defaults of its own", advice);
}

/** What the replica says when it refuses, or null. */
async function refusalOf(request: () => Promise<Completion>): Promise<string | null> {
  try {
    await request();
    return null;
  } catch (error) {
    if (error instanceof ReplicaError && error.status >= 400 && error.status < 500) return error.message;
    throw error;
  }
}
