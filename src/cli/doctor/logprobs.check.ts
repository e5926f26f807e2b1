// The meaning of log-probabilities. They must be the model's own: before temperature and penalties, of a distribution
// that sums to 1, and the same for a token whether it was generated or part of the prompt. Training relies on all three.

import { type Bench, TOP } from "./bench.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

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
