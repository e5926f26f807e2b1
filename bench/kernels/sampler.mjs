// Measures the CPU time of choosing one token, by vocabulary size, distribution and settings.
// Usage: npm run build && node bench/kernels/sampler.mjs [iterations]. Prints the median of five runs of that many tokens.
import { SequenceSampler } from "../../dist/sampling/sampler.js";

const iterations = Number(process.argv[2] ?? 60);
const base = {
  temperature: 0.7,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
  allowedTokenIds: null,
  badWords: [],
  minTokens: 0,
  maxTokens: 1e9,
  eosTokenId: null,
  stopTokenIds: [],
  minTokensMask: [],
  ignoreEos: true,
  seed: 1n,
  logprobs: null,
  promptLogprobs: null,
  repetitionDetection: null,
};
const settings = {
  greedy: { temperature: 0 },
  "greedy, logprobs 5": { temperature: 0, logprobs: 5 },
  "temperature 1, logprobs 0 (rollouts)": { temperature: 1, logprobs: 0 },
  "temperature 0.7": {},
  "temperature 0.7, logprobs 5": { logprobs: 5 },
  "top_p 0.9": { topP: 0.9 },
  "top_p 0.95, logprobs 5": { topP: 0.95, logprobs: 5 },
  "top_p 0.1": { topP: 0.1 },
  "top_k 20": { topK: 20 },
  "top_k 5000": { topK: 5000 },
  "top_k 20, top_p 0.95": { topK: 20, topP: 0.95 },
  "top_k 50, top_p 0.9, min_p 0.05, logprobs 5": { topK: 50, topP: 0.9, minP: 0.05, logprobs: 5 },
  "the same, all penalties, 2,000-token prompt": {
    ...{ topK: 50, topP: 0.9, minP: 0.05, logprobs: 5 },
    ...{ repetitionPenalty: 1.1, frequencyPenalty: 0.1, presencePenalty: 0.1 },
  },
  "temperature 0.7, grammar mask, half legal": { masked: true },
};
// A few likely tokens over a broad tail, as in a trained model; a normal distribution; a nearly flat one; a flat one.
const shapes = {
  peaked: (i, normal) => 2 * normal + (i % 997 === 0 ? 12 + 2 * normal : 0),
  normal: (_, normal) => 3 * normal,
  "nearly flat": (_, normal) => 5 + 0.02 * normal,
  flat: () => 5,
};

let state = 1;
function uniform() {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return ((state >>> 0) + 0.5) / 2 ** 32;
}

function logitsOf(vocab, shape) {
  return Float32Array.from({ length: vocab }, (_, i) => {
    const normal = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    return shape(i, normal);
  });
}

/** CPU milliseconds per call, of all threads of the process. */
function measure(vocab, logits, { masked = false, ...params }) {
  const prompt = Array.from({ length: 2000 }, (_, i) => (i * 31) % vocab);
  const mask = masked ? new Int32Array(Math.ceil(vocab / 32)).fill(0x5555_5555) : null;
  const sampler = new SequenceSampler({ ...base, ...params }, 0, prompt, vocab);
  for (let i = 0; i < 50; i++) sampler.sample(logits, mask);
  const runs = Array.from({ length: 5 }, () => {
    const start = process.cpuUsage();
    for (let i = 0; i < iterations; i++) sampler.sample(logits, mask);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / iterations / 1000;
  });
  return runs.sort((a, b) => a - b)[2];
}

for (const vocab of [8192, 151_936]) {
  const rows = Object.values(shapes).map((shape) => logitsOf(vocab, shape));
  console.log(`\nvocabulary ${vocab}: ms of CPU per token`);
  console.log(
    "".padEnd(46) +
      Object.keys(shapes)
        .map((name) => name.padStart(12))
        .join(""),
  );
  for (const [name, params] of Object.entries(settings)) {
    const cells = rows.map((logits) => measure(vocab, logits, params).toFixed(3).padStart(12));
    console.log(name.padEnd(46) + cells.join(""));
  }
}
