// llama.cpp's own benchmark program, started once for every lap. It times itself, on tokens that it makes up, and chooses none:
// a step is a little cheaper for it than for the others. It can neither score nor show what it computes, but it reads the
// same file as llama.cpp.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Lap } from "../process/stopwatch.ts";
import type { Contender, ContenderOptions } from "./contender.ts";

interface Options extends ContenderOptions {
  program: string;
  flashAttention: boolean;
}

/** A line of its output: seconds of the prompt and of `tg` steps of `pl` sequences. */
interface Line {
  pp: number;
  tg: number;
  pl: number;
  t_pp: number;
  t_tg: number;
}

/** Tokens of its context: it warms up with 16, in a batch that fits. */
const LEAST_ROOM = 64;

export async function create({ program, model, threads, flashAttention }: Options): Promise<Contender> {
  const run = async (prompt: number, batch: number, steps: number): Promise<Line> => {
    const room = Math.max(LEAST_ROOM, batch * (prompt + steps));
    const sizes = ["-npp", prompt, "-ntg", steps, "-npl", batch, "-c", room, "-t", threads, "-tb", threads].map(String);
    // -pps: the sequences have one prompt, computed once
    const args = ["-m", model, ...sizes, "-pps", "-fa", flashAttention ? "on" : "off", "--output-format", "jsonl"];
    const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 2 ** 24 });
    return parse(stdout);
  };
  await run(1, 1, 1);
  let cell: [prompt: number, batch: number, steps: number] | null = null;
  return {
    async prefill(prompt) {
      const { pp, t_pp } = await run(prompt.length, 1, 1);
      return lap(pp, t_pp);
    },
    async prepareDecode(prompt, batch, steps) {
      cell = [prompt.length, batch, steps];
    },
    async decode() {
      const { tg, pl, t_tg } = await run(...cell!);
      return lap(pl * tg, t_tg);
    },
    async finishDecode() {
      cell = null;
    },
    score: async () => [],
    greedy: async () => [],
  };
}

const lap = (tokens: number, seconds: number): Lap => ({ tokens, seconds, cpuSeconds: Number.NaN });

/** The last line that is an object; the program prints its log beside it. */
function parse(output: string): Line {
  const line = output.split("\n").findLast((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`llama-batched-bench printed no result:\n${output.slice(-500)}`);
  return JSON.parse(line) as Line;
}
