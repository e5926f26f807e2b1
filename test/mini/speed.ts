// Measures the served model's speed over HTTP: reading an uncached prompt and writing a reply of fixed length. Takes medians
// over some repetitions.

import { cpus, loadavg } from "node:os";
import { type Endpoint, timedReply } from "./endpoint.ts";

const REPLY = 200;
const PROMPTS = [128, 512, 1024];

export async function speedTable(endpoint: Endpoint, repeats = 7): Promise<string> {
  const load = loadavg()[0]?.toFixed(1);
  await timedReply(endpoint, wordsFor(64, 0), REPLY);
  const lines = ["| measured over HTTP | seconds | tokens per second |", "|---|---:|---:|"];
  for (const size of PROMPTS) {
    const runs = await repeated(repeats, (index) => timedReply(endpoint, wordsFor(size, index), 1));
    const seconds = median(runs.map((run) => run.seconds));
    const tokens = runs[0]?.promptTokens ?? 0;
    lines.push(`| prefill, ${tokens} tokens | ${seconds.toFixed(3)} | ${Math.round(tokens / seconds)} |`);
  }
  const pairs = await repeated(repeats, async (index) => ({
    first: await timedReply(endpoint, wordsFor(16, index), 1),
    whole: await timedReply(endpoint, wordsFor(16, index), REPLY),
  }));
  const whole = median(pairs.map((pair) => pair.whole.seconds));
  const rate = median(pairs.map((pair) => (REPLY - 1) / (pair.whole.seconds - pair.first.seconds)));
  lines.push(`| decode, one reply of ${REPLY} tokens, prompt included | ${whole.toFixed(3)} | ${Math.round(rate)} |`);
  return `${lines.join("\n")}\n\n${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}, load average before: ${load}`;
}

async function repeated<R>(count: number, work: (index: number) => Promise<R>): Promise<R[]> {
  const out: R[] = [];
  for (let index = 0; index < count; index++) out.push(await work(index));
  return out;
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

/** A question of nearly `tokens` tokens. Most words and digits are one token; the template adds about ten. */
function wordsFor(tokens: number, index: number): string {
  const words = ["the", "old", "man", "and", "his", "dog", "go", "to", "see", "a"];
  return Array.from({ length: tokens - 10 }, (_, at) => words[(at * 7 + index * 3 + Math.floor(at / 10)) % 10]).join(
    " ",
  );
}
