// Whether log-probabilities are right, and the same again.

import { type Finding, ok, warning, wrong } from "./finding.ts";
import { type Bench, type Completion, deltaTokens, finishOf, TOP } from "./replica.ts";

// The meaning of log-probabilities. They must be the model's own: before temperature and penalties, of a distribution
// that sums to 1, and the same for a token whether it was generated or part of the prompt. Training relies on all three.

/** Rounding in bfloat16 stays below this. Processed log-probabilities differ by far more. */
const SAME = 0.1;
/** Between generated and prompt tokens. Above `NOISY` the loss's importance ratios become noise; above `OTHER` it is another model. */
const NOISY = 0.05;
const OTHER = 1;
const RAW = "Start vLLM with --logprobs-mode raw_logprobs (its default).";

export async function* checkLogprobs(bench: Bench): AsyncGenerator<Finding> {
  yield await normalised(bench);
  yield await unchangedBy(bench, "temperature", { temperature: 2, seed: 1 });
  yield await unchangedBy(bench, "penalties", { repetition_penalty: 1.8, presence_penalty: 1, frequency_penalty: 1 });
  yield await promptAgrees(bench);
}

async function normalised(bench: Bench): Promise<Finding> {
  const { top, logprobs } = await bench.greedy();
  if (logprobs.length === 0 || top.length !== logprobs.length) {
    return wrong("logprobs", "the reply has no log-probabilities", RAW);
  }
  const masses = top.map((best) => [...best.values()].reduce((sum, logprob) => sum + Math.exp(logprob), 0));
  const largest = Math.max(...masses);
  const highest = Math.max(...logprobs);
  if (largest <= 1.001 && highest <= 1e-6) return ok("logprobs", "probabilities sum to at most 1");
  return wrong("logprobs", `these are no log-probabilities: ${TOP} of them sum to ${largest.toFixed(3)}`, RAW);
}

/** Compares the first token's candidates, which depend on the prompt alone. */
async function unchangedBy(bench: Bench, what: string, fields: Record<string, unknown>): Promise<Finding> {
  const check = `logprobs-${what}`;
  const plain = (await bench.greedy()).top[0] ?? new Map<number, number>();
  const changed = (await bench.complete({ ...fields, max_tokens: 1, logprobs: TOP })).top[0] ?? new Map();
  const shifts = [...plain]
    .filter(([id]) => changed.has(id))
    .map(([id, logprob]) => Math.abs(logprob - changed.get(id)!));
  const shift = shifts.length < 2 ? Number.POSITIVE_INFINITY : Math.max(...shifts);
  if (shift <= SAME) return ok(check, `independent of ${what}`);
  const amount = Number.isFinite(shift) ? `by ${shift.toFixed(2)}` : "beyond recognition";
  return wrong(check, `log-probabilities depend on ${what}: they change ${amount}`, RAW);
}

/** Sends the generated tokens back as part of a prompt. */
async function promptAgrees(bench: Bench): Promise<Finding> {
  const { tokenIds, logprobs } = await bench.greedy();
  const prompt = [...bench.prompt, ...tokenIds];
  const { promptLogprobs } = await bench.replica.complete(bench.served.name, prompt, {
    max_tokens: 1,
    prompt_logprobs: 0,
  });
  if (promptLogprobs === null || promptLogprobs.length !== prompt.length) {
    return wrong(
      "logprobs-prompt",
      "prompt_logprobs are missing",
      "Update vLLM. Flywheel needs them for its own replies.",
    );
  }
  const differences = logprobs.map((logprob, i) =>
    Math.abs(logprob - (promptLogprobs[bench.prompt.length + i] ?? Number.POSITIVE_INFINITY)),
  );
  const largest = Math.max(...differences);
  const detail = `generated and prompt tokens agree within ${largest.toPrecision(2)}`;
  if (largest <= NOISY) return ok("logprobs-prompt", detail);
  if (largest <= OTHER) {
    const advice = "This is rounding in a small data type. Train with a clipped loss, or serve in a larger --dtype.";
    return warning("logprobs-prompt", `${detail} only`, advice);
  }
  return wrong("logprobs-prompt", `generated and prompt tokens differ by ${largest.toPrecision(2)}`, RAW);
}

// Whether the same request gives the same reply. Greedy tokens must repeat, or a broken stream cannot be resumed on another
// replica. Equal bits are better still: then replies do not depend on what else runs.

/** A lead of the best token over the next that rounding in bfloat16 cannot turn around. */
const CLEAR_LEAD = 0.2;
const OTHERS = 6;
const INVARIANT =
  "Rounding depends on the batch. VLLM_BATCH_INVARIANT=1 makes it equal where vLLM supports it; otherwise bits are not promised.";
const NOT_GREEDY =
  "Temperature 0 must be greedy: look for a proxy, plugin or speculative decoder that changes requests.";

export async function* checkDeterminism(bench: Bench): AsyncGenerator<Finding> {
  const first = await bench.greedy();
  yield greedy(first);
  yield compared("repeat", "the same request twice", first, await bench.complete({ logprobs: TOP }));
  yield compared("batch", "the same request beside others", first, await besideOthers(bench));
  yield await seeds(bench);
  yield await streamed(bench, first);
}

/** At temperature 0 every token is the best candidate. */
function greedy({ tokenIds, logprobs, top }: Completion): Finding {
  const behind = logprobs.map((logprob, i) => Math.max(...(top[i]?.values() ?? [logprob])) - logprob);
  const at = behind.findIndex((lead) => lead > CLEAR_LEAD);
  if (at === -1) return ok("greedy", `all ${tokenIds.length} tokens are the best candidates`);
  const detail = `token ${at + 1} of a greedy reply is behind the best candidate by ${behind[at]!.toFixed(2)}`;
  return wrong("greedy", detail, NOT_GREEDY);
}

function compared(check: string, what: string, first: Completion, second: Completion): Finding {
  const at = first.tokenIds.findIndex((id, i) => id !== second.tokenIds[i]);
  if (at !== -1) {
    const lead = leadOf(first, at);
    const detail = `${what} gives other tokens from token ${at + 1} on`;
    if (lead > CLEAR_LEAD) return wrong(check, `${detail}, where the best led by ${lead.toFixed(2)}`, NOT_GREEDY);
    return warning(check, `${detail}, at a tie`, INVARIANT);
  }
  const differences = first.logprobs.map((logprob, i) => Math.abs(logprob - (second.logprobs[i] ?? Number.NaN)));
  const largest = Math.max(...differences);
  if (largest === 0) return ok(check, `${what} gives equal bits`);
  return warning(check, `${what} gives equal tokens; log-probabilities differ by ${largest.toPrecision(2)}`, INVARIANT);
}

function leadOf({ top }: Completion, at: number): number {
  const [best, next] = [...(top[at]?.values() ?? [])].sort((a, b) => b - a);
  return best === undefined || next === undefined ? Number.POSITIVE_INFINITY : best - next;
}

async function besideOthers(bench: Bench): Promise<Completion> {
  const { replica, served, prompt } = bench;
  const others = Array.from({ length: OTHERS }, (_, i) =>
    replica.complete(served.name, prompt.slice(i + 1), { max_tokens: 24, temperature: 1, seed: i }),
  );
  const [reply] = await Promise.all([bench.complete({ logprobs: TOP }), ...others]);
  return reply;
}

async function seeds(bench: Bench): Promise<Finding> {
  const fields = { temperature: 1, seed: 11 };
  const [first, second] = [await bench.complete(fields), await bench.complete(fields)];
  if (first.tokenIds.join() === second.tokenIds.join()) return ok("seed", "a seed repeats a sampled reply");
  return warning("seed", "the same seed gives another reply", INVARIANT);
}

/** The stream's pieces must add up to the reply that comes at once. */
async function streamed(bench: Bench, whole: Completion): Promise<Finding> {
  const { replica, served, prompt } = bench;
  const tokens: number[] = [];
  let finish: unknown = null;
  let hasUsage = false;
  for await (const event of replica.stream(served.name, prompt, { logprobs: TOP })) {
    tokens.push(...deltaTokens(event));
    finish ??= finishOf(event);
    hasUsage ||= (event.usage ?? null) !== null;
  }
  const advice = "Update vLLM. Flywheel reads replies as streams of token ids.";
  if (finish === null || !hasUsage) return wrong("stream", "the stream has no finish_reason or no usage", advice);
  if (tokens.length === whole.tokenIds.length) return ok("stream", `a stream carries all ${tokens.length} token ids`);
  return wrong("stream", `a stream carries ${tokens.length} of ${whole.tokenIds.length} token ids`, advice);
}
