// Asks the Python that will train what it can do. The answer comes from trainer/flywheel_trainer/check.py, run in that
// environment, so it is what the first job would find.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** What check.py prints. */
export interface TrainerFacts {
  python: string;
  executable: string;
  packages: Record<"torch" | "transformers" | "safetensors", { version: string | null; error: string | null }>;
  devices: { name: string; freeBytes: number; totalBytes: number }[];
  /** null when the packages cannot be used. */
  model: ({ error: null } & ModelNeeds) | { error: string } | null;
}

export interface ModelNeeds {
  type: string;
  parameters: number;
  weightBytes: number;
  /** Factors, gradient and optimizer. */
  adapterBytes: number;
  /** Activations of one token when layers are computed again. */
  rowBytes: number;
  /** Share of the free memory that activations may take. */
  memoryShare: number;
  positions: number;
}

export interface PythonProgram {
  python: string;
  /** All of its environment. */
  env: Record<string, string>;
}

export interface TrainedModel {
  /** Checkpoint folder. */
  folder: string;
  dtype: string;
  rank: number;
}

/** PyTorch takes its time to import. */
const LONGEST_MS = 300_000;

/** Throws an Error whose message is the last line that Python wrote. */
export async function askPython(program: PythonProgram, { folder, dtype, rank }: TrainedModel): Promise<TrainerFacts> {
  const args = ["-m", "flywheel_trainer.check", "--model", folder, "--dtype", dtype, "--rank", String(rank)];
  const out = await output(program, args);
  // libraries may print before it
  return JSON.parse(out.trimEnd().split("\n").at(-1)!) as TrainerFacts;
}

/** For example "3.11.7". Throws as above. */
export async function pythonVersion(program: PythonProgram): Promise<string> {
  return (await output(program, ["--version"])).trim().replace(/^Python /, "");
}

async function output({ python, env }: PythonProgram, args: string[]): Promise<string> {
  const options = { env, timeout: LONGEST_MS, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(python, args, options)).stdout;
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    throw new Error(stderr.trim().split("\n").at(-1) || message, { cause: error });
  }
}
