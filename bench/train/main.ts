// `npm run bench:train`: compares LoRA training with plain PyTorch on the same weights, text, threads and cores. The two take
// turns. Writes tokens per second and peak memory as a Markdown page to bench/results.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Shape, writeRandomCheckpoint } from "../models/random-checkpoint.ts";
import { startRemote } from "../process/remote.ts";
import { median } from "../process/stopwatch.ts";
import { describeMachine, machineSlug } from "../report/machine.ts";
import type { StepOptions, StepRunner, StepsLap } from "./flywheel-step.ts";
import { startTorch } from "./torch.ts";

/** 12 layers of 768: the small GPT-2 with a gated MLP. */
const SHAPE_100M: Shape = { layers: 12, hidden: 768, heads: 12, kvHeads: 4, intermediate: 2048, vocab: 16384 };
const BATCHES: readonly (readonly [sequences: number, length: number])[] = [
  [4, 128],
  [4, 256],
  [1, 1024],
];
const RANK = 8;
/** Both sides start with the same weights and an adapter that changes nothing, so their first losses agree up to rounding. */
const SAME_LOSS = 1e-3;
/** From bench/dist/bench/train/. */
const BUNDLED = fileURLToPath(new URL("../../../../models/flywheel-mini", import.meta.url));

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    threads: { type: "string", default: String(availableParallelism()) },
    repeats: { type: "string", default: "3" },
    quick: { type: "boolean", default: false },
    python: { type: "string", default: "python3" },
    out: { type: "string", default: fileURLToPath(new URL("../../../results", import.meta.url)) },
  },
});
const [threads, repeats] = [Number(values.threads), Number(values.repeats)];
const batches = values.quick ? BATCHES.slice(0, 1) : BATCHES;

interface Entrant {
  name: string;
  run: StepRunner["run"];
  peakBytes(): number;
  stop(): Promise<void>;
}

async function ours(options: StepOptions): Promise<Entrant> {
  const remote = await startRemote<StepRunner>(new URL("./flywheel-step.js", import.meta.url), options);
  const name = `flywheel ${options.weights}`;
  return { name, run: remote.object.run, peakBytes: () => remote.memory().peakBytes, stop: remote.stop };
}

/** The section about one model. */
async function measure(title: string, folder: string): Promise<string[]> {
  const lines = [
    `## ${title}`,
    "",
    "| batch | engine | tokens/s | against PyTorch | tokens/CPU-s | against PyTorch | peak memory | first loss |",
    "|---|---|---:|---:|---:|---:|---:|---:|",
  ];
  for (const [sequences, length] of batches) {
    const torch = await startTorch(values.python, folder, threads, RANK);
    const entrants: Entrant[] = [await ours({ folder, weights: "float32", threads, rank: RANK })];
    if (!values.quick) entrants.push(await ours({ folder, weights: "int8", threads, rank: RANK }));
    if (torch) entrants.push({ name: `PyTorch ${torch.version}`, ...torch });
    const laps = new Map<Entrant, StepsLap[]>();
    for (let repeat = 0; repeat <= repeats; repeat++) {
      for (const entrant of entrants) {
        const lap = await entrant.run(sequences, length, 1);
        laps.set(entrant, [...(laps.get(entrant) ?? []), lap]);
      }
    }
    const firstLoss = (entrant: Entrant) => laps.get(entrant)![0]!.losses[0]!;
    const rate = (entrant: Entrant, per: "seconds" | "cpuSeconds") =>
      // the first lap warms up
      median(
        laps
          .get(entrant)!
          .slice(1)
          .map((lap) => lap.tokens / lap[per]),
      );
    const opponent = torch ? entrants.at(-1)! : null;
    const against = (entrant: Entrant, per: "seconds" | "cpuSeconds") =>
      opponent ? `${(rate(entrant, per) / rate(opponent, per)).toFixed(2)}x` : "not installed";
    if (opponent && Math.abs(firstLoss(entrants[0]!) - firstLoss(opponent)) > SAME_LOSS) {
      throw new Error(`not the same model: loss ${firstLoss(entrants[0]!)}, PyTorch has ${firstLoss(opponent)}`);
    }
    for (const entrant of entrants) {
      const cells = [
        ...[`${sequences} x ${length}`, entrant.name],
        ...[rate(entrant, "seconds").toFixed(0), against(entrant, "seconds")],
        ...[rate(entrant, "cpuSeconds").toFixed(0), against(entrant, "cpuSeconds")],
        ...[`${(entrant.peakBytes() / 2 ** 20).toFixed(0)} MiB`, firstLoss(entrant).toFixed(4)],
      ];
      lines.push(`| ${cells.join(" | ")} |`);
      console.error(cells.join("  "));
      await entrant.stop();
    }
  }
  return [...lines, ""];
}

const machine = describeMachine();
const scratch = mkdtempSync(join(tmpdir(), "bench-train-"));
try {
  const models: [string, string][] = values.model
    ? [[values.model, values.model]]
    : [["The bundled model (10 layers, 384 wide)", BUNDLED]];
  if (!values.model && !values.quick) {
    const folder = join(scratch, "100m");
    writeRandomCheckpoint(folder, SHAPE_100M);
    models.push(["100 M parameters (12 layers, 768 wide)", folder]);
  }
  const page = [
    "# LoRA training: tokens per second",
    "",
    `${machine.cpu}, ${machine.cores} cores, ${threads} threads; ${machine.system}; Node ${machine.node}; load ${machine.load.toFixed(1)}.`,
    `Rank ${RANK} on every linear layer, AdamW, forward and backward over all tokens; median of ${repeats} laps taken in turns.`,
    "",
  ];
  for (const [title, folder] of models) page.push(...(await measure(title, folder)));
  const text = page.join("\n");
  console.log(text);
  if (values.out !== "-") {
    mkdirSync(values.out, { recursive: true });
    const day = new Date().toISOString().slice(0, 10);
    writeFileSync(join(values.out, `${day}-${machineSlug(machine)}-train.md`), text);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
