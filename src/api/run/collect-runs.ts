// Runs all prompts of one request at once and hands their outputs over as they come. One that fails ends the others.
import type { GenerationRun, RunOutput } from "./generation-run.ts";

export async function collectRuns(
  runs: readonly GenerationRun[],
  accept: (run: number, output: RunOutput) => void,
): Promise<void> {
  try {
    await Promise.all(
      runs.map(async (run, index) => {
        for await (const output of run.outputs()) accept(index, output);
      }),
    );
  } catch (error) {
    for (const run of runs) run.abort();
    throw error;
  }
}
