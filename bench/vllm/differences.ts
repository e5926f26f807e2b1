// Differences between vLLM's own replies and Flywheel's in front of it that are meant to be, with their reasons.

interface Difference {
  /** Matches the name of the request. */
  name: RegExp;
  /** Matches every difference between the two replies, as compare.ts writes them. */
  differences: RegExp;
  reason: string;
}

const KNOWN_DIFFERENCES: readonly Difference[] = [
  {
    name: /^/,
    differences: /^\.usage\.prompt_tokens_details(\.cached_tokens)?:/,
    reason: "vLLM was asked first, so the second request finds more in its prefix cache",
  },
  {
    name: /^/,
    differences: /^\.error\.(message|param|type):/,
    reason: "Flywheel words the error itself, and names the field in `param`",
  },
  {
    name: /^/,
    differences: /^status: 400, recorded 500/,
    reason: "Flywheel refuses with 400 where vLLM fails with 500",
  },
  {
    name: /^lp-top-null$/,
    differences: /^\.choices\[0\]\.logprobs:/,
    reason: "`top_logprobs: null` counts as 0 in Flywheel, and as no log-probabilities in vLLM",
  },
  {
    name: /^(c-echo0|models)$/,
    differences: /^/,
    reason: "`max_tokens: 0` counts no output token in Flywheel; the list of models has Flywheel's own names",
  },
  {
    name: /^(parts-bare|n=2|c-n2|tools-only|tools-empty)$/,
    differences: /^status: 200, recorded 400/,
    reason: "Flywheel accepts bare content parts, n > 1 at temperature 0, and tools without a parser",
  },
  {
    name: /^(content-null-user|role-int|reasoning_effort-none|s-bad-allowed)$/,
    differences: /^status: 400, recorded 200/,
    reason: "Flywheel refuses what the interface does not allow, and before a stream begins",
  },
  {
    name: /^(lp-|prompt_logprobs=|s-lp|c-lp)21$/,
    differences: /^status: 400, recorded 200/,
    reason: "this vLLM's --max-logprobs is larger than Flywheel's",
  },
  {
    name: /^(notfound|get)$/,
    differences: /^/,
    reason: "404 and 405 have the error object in Flywheel",
  },
];

/** The reason if all differences are meant to be; otherwise null. */
export function reasonFor(name: string, differences: readonly string[]): string | null {
  const isKnown = (entry: Difference) =>
    entry.name.test(name) && differences.every((text) => entry.differences.test(text));
  return KNOWN_DIFFERENCES.find(isKnown)?.reason ?? null;
}
