// The PyTorch side: torch_step.py in a Python process, if Python has PyTorch.

import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { StepRunner, StepsLap } from "./flywheel-step.ts";

export interface Torch extends StepRunner {
  version: string;
  peakBytes(): number;
  stop(): Promise<void>;
}

/** From bench/dist/bench/train/ to the script. */
const SCRIPT = fileURLToPath(new URL("../../../train/torch_step.py", import.meta.url));

/** Null if `python3 -c "import torch"` fails. */
export async function startTorch(python: string, folder: string, threads: number, rank: number): Promise<Torch | null> {
  if (spawnSync(python, ["-c", "import torch"], { stdio: "ignore" }).status !== 0) return null;
  const child = spawn(python, [SCRIPT, folder, String(threads), String(rank)], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      ...process.env,
      OMP_NUM_THREADS: String(threads),
      MKL_NUM_THREADS: String(threads),
      CUDA_VISIBLE_DEVICES: "",
    },
  });
  const lines = createInterface({ input: child.stdout });
  const { torch } = await nextLine<{ torch: string }>(lines);
  let peak = 0;
  return {
    version: torch,
    peakBytes: () => peak,
    async run(sequences, length, steps) {
      child.stdin.write(`${JSON.stringify({ sequences, length, steps })}\n`);
      const answer = await nextLine<TorchAnswer>(lines);
      peak = answer.peak_bytes;
      const { tokens, seconds, cpu_seconds: cpuSeconds, losses } = answer;
      return { tokens, seconds, cpuSeconds, losses } satisfies StepsLap;
    },
    stop: () => end(child),
  };
}

interface TorchAnswer {
  tokens: number;
  seconds: number;
  cpu_seconds: number;
  losses: number[];
  peak_bytes: number;
}

async function nextLine<Value>(lines: Interface): Promise<Value> {
  const [line] = (await once(lines, "line")) as [string];
  return JSON.parse(line) as Value;
}

async function end(child: ChildProcessByStdio<Writable, Readable, null>): Promise<void> {
  child.stdin.end();
  if (child.exitCode === null) await once(child, "exit");
}
