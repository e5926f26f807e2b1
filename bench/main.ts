// `npm run bench`: compares our engine with node-llama-cpp and transformers.js in one run, on the same weights, prompts and
// threads. Writes a Markdown page to bench/results. bench/README.md says what is measured and how.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { ModelConfig } from "../src/model/checkpoint/model-config.ts";
import type { Precision } from "./contenders/contender.ts";
import { type Flags, readFlags, USAGE } from "./flags.ts";
import { ModelFiles } from "./models/model-files.ts";
import { sizes } from "./models/random-checkpoint.ts";
import { type Cell, cellName, entrants } from "./plan.ts";
import type { GemmProbe } from "./probes/gemm.ts";
import type { ProductsProbe, ProductsProbeOptions } from "./probes/int8-products.ts";
import type { PrefixProbe, PrefixProbeOptions } from "./probes/prefix-cache.ts";
import { flagsOrExit } from "./process/flags-or-exit.ts";
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
  const int8Products = new Map<string, Lap[]>();
  for (const precision of plan.precisions) {
    log(`— ${precision}`);
    const probe = await startProbe(precision, plan.threads, config);
    const round = await runRound(entrants(plan, precision), {
      plan,
      vocab: config.vocabSize,
      modelOf: (entrant) => files.pathFor(entrant.engine, entrant.precision),
      log,
      between: async (cell: Cell) => {
        if (probe?.kind === "gemm" && cell.kind === "prefill" && cell.tokens === 512)
          gemm.push(await probe.object.run());
        if (probe?.kind === "products") {
          const lap = await (cell.kind === "prefill"
            ? probe.object.run(cell.tokens, 1, 1)
            : probe.object.run(cell.batch, cell.batch, cell.steps));
          int8Products.set(cellName(cell), [...(int8Products.get(cellName(cell)) ?? []), lap]);
        }
      },
    });
    await probe?.stop();
    results.push(...round);
  }
  const prefix = plan.engines.includes("flywheel") ? await prefixAttempts(files, plan.threads, plan.repeats) : [];
  const name = model === null ? "random weights" : basename(files.checkpoint.path);
  return { startedAt, quick, plan, machine, model: name, config, entrants: results, gemm, int8Products, prefix };
}

type Probe = (Remote<GemmProbe> & { kind: "gemm" }) | (Remote<ProductsProbe> & { kind: "products" });

/** What the runtime alone reaches at a precision, measured in turns with the engines. */
async function startProbe(precision: Precision, threads: number, config: ModelConfig): Promise<Probe | null> {
  if (precision === "f32") {
    const remote = await startRemote<GemmProbe>(new URL("./probes/gemm.js", import.meta.url), { threads });
    return { kind: "gemm", ...remote };
  }
  if (precision !== "int8") return null;
  const options: ProductsProbeOptions = { config, threads };
  const remote = await startRemote<ProductsProbe>(new URL("./probes/int8-products.js", import.meta.url), options);
  return { kind: "products", ...remote };
}

async function prefixAttempts(files: ModelFiles, threads: number, repeats: number): Promise<BenchResults["prefix"]> {
  const options: PrefixProbeOptions = { folder: files.checkpoint.path, threads };
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

const flags = flagsOrExit(readFlags, USAGE);
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
