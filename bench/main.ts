// `npm run bench`: our engine beside node-llama-cpp and transformers.js on the same weights, prompts and threads, in one
// run. Writes a markdown page into bench/results. docs/reference/benchmarks.md says what is measured and how.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Flags, readFlags, USAGE } from "./flags.ts";
import { ModelFiles } from "./models/model-files.ts";
import { sizes } from "./models/random-checkpoint.ts";
import { type Cell, entrants } from "./plan.ts";
import type { GemmProbe } from "./probes/gemm.ts";
import type { PrefixProbe, PrefixProbeOptions } from "./probes/prefix-cache.ts";
import { type Remote, startRemote } from "./process/remote.ts";
import type { Lap } from "./process/stopwatch.ts";
import { describeMachine, machineSlug } from "./report/machine.ts";
import { type BenchResults, strangers } from "./report/measurements.ts";
import { report } from "./report/report.ts";
import { type EntrantResult, runRound } from "./rounds.ts";

const log = (line: string): void => console.error(line);

async function bench({ plan, quick, model }: Flags, files: ModelFiles): Promise<BenchResults> {
  const machine = describeMachine();
  const startedAt = new Date();
  const { config } = files.checkpoint;
  const results: EntrantResult[] = [];
  const gemm: Lap[] = [];
  for (const precision of plan.precisions) {
    log(`— ${precision}`);
    const probe =
      precision === "f32" ? await startRemote<GemmProbe>(new URL("./probes/gemm.js", import.meta.url), plan) : null;
    const round = await runRound(entrants(plan, precision), {
      plan,
      vocab: config.vocabSize,
      modelOf: (entrant) => files.pathFor(entrant.engine, entrant.precision),
      log,
      between: async (cell: Cell) => {
        const wanted = probe !== null && cell.kind === "prefill" && cell.tokens === 512;
        if (wanted) gemm.push(await probe.object.run());
      },
    });
    await probe?.stop();
    results.push(...round);
  }
  const prefix = plan.engines.includes("flywheel") ? await prefixAttempts(files, plan.threads, plan.repeats) : [];
  const name = model === null ? "random weights" : basename(files.checkpoint.folder);
  return { startedAt, quick, plan, machine, model: name, config, entrants: results, gemm, prefix };
}

async function prefixAttempts(files: ModelFiles, threads: number, repeats: number): Promise<BenchResults["prefix"]> {
  const options: PrefixProbeOptions = { folder: files.checkpoint.folder, threads };
  const probe: Remote<PrefixProbe> = await startRemote<PrefixProbe>(
    new URL("./probes/prefix-cache.js", import.meta.url),
    options,
  );
  try {
    await probe.object.run(0); // the first run of a process is slower
    const attempts: Awaited<ReturnType<PrefixProbe["run"]>>[] = [];
    for (let i = 1; i <= repeats; i++) attempts.push(await probe.object.run(i));
    return attempts;
  } finally {
    await probe.stop();
  }
}

function readFlagsOrExit(): Flags {
  try {
    return readFlags(process.argv.slice(2));
  } catch (error) {
    log(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const flags = readFlagsOrExit();
const files = new ModelFiles(flags.model, flags.size);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    files.remove();
    process.exit(1);
  });
}
try {
  const results = await bench(flags, files);
  const page = report(results);
  console.log(page);
  if (flags.out !== null) {
    const day = results.startedAt.toISOString().slice(0, 10);
    const size = flags.model === null && flags.size !== sizes[0] ? `-${flags.size}` : "";
    const suffix = flags.quick ? "-quick" : "";
    const path = join(flags.out, `${day}-${machineSlug(results.machine)}${size}${suffix}.md`);
    mkdirSync(flags.out, { recursive: true });
    writeFileSync(path, page);
    log(`written to ${path}`);
  }
  const disagreeing = strangers(results).length > 0;
  const failed = results.entrants.some(({ failure, entrant }) => failure !== null && entrant.engine === "flywheel");
  if (disagreeing || failed) process.exitCode = 1;
} finally {
  files.remove();
}
