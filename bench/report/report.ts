// Writes the results as a Markdown page.

import { type Cell, type EngineName, entrantLabel, peers } from "../plan.ts";
import { weightCounts } from "./flops.ts";
import {
  agreements,
  type BenchResults,
  best,
  LARGEST_F32_DIFFERENCE,
  type Per,
  productsSpeed,
  ratio,
  speed,
  strangers,
} from "./measurements.ts";
import { targets } from "./targets.ts";

export function report(results: BenchResults): string {
  const cells = results.plan.cells;
  const prefills = cells.filter((cell) => cell.kind === "prefill");
  const decodes = cells.filter((cell) => cell.kind === "decode");
  return [
    `# Benchmark, ${results.startedAt.toISOString().slice(0, 10)}, ${results.machine.cpu}, ${results.machine.cores} cores`,
    circumstances(results),
    "## Targets",
    targetTable(results),
    "## Prefill, tokens per second",
    speedTable(results, prefills, "seconds"),
    "## Prefill, tokens per CPU-second",
    speedTable(results, prefills, "cpuSeconds"),
    "## Decode, tokens per second",
    "Columns: sequences × tokens already in each.",
    speedTable(results, decodes, "seconds"),
    "## Decode, tokens per CPU-second",
    speedTable(results, decodes, "cpuSeconds"),
    ...ratioSection(results, cells),
    ...productsSection(results, cells),
    "## Memory",
    memoryTable(results),
    ...agreementSection(results),
    ...failures(results),
    "",
  ].join("\n\n");
}

function circumstances({ machine, plan, config, ...results }: BenchResults): string {
  const { layers, head, embedding } = weightCounts(config);
  const millions = ((layers + head + embedding) / 1e6).toFixed(0);
  const shape = `${config.numLayers} layers, ${config.hiddenSize} wide, ${config.numHeads}/${config.numKvHeads} heads`;
  const packages = Object.entries(machine.packages).map(([name, version]) => `${name} ${version ?? "not installed"}`);
  const sets = machine.instructionSets.length === 0 ? "" : ` (${machine.instructionSets.join(", ")})`;
  const busy = machine.load > 0.5 ? " — the machine was busy: do not quote these numbers" : "";
  const lines = [
    `${machine.cpu}${sets}, ${machine.cores} cores, ${gibi(machine.memoryBytes)}, ${machine.system}, Node ${machine.node}`,
    `${packages.join(", ")}; kernels ${machine.kernels}`,
    `model: ${results.model}, ${config.family}, ${millions} M weights (${shape}, vocabulary ${config.vocabSize})`,
    `threads ${plan.threads}, repetitions ${plan.repeats} (prompts: three times as many)${results.quick ? ", quick mode" : ""}`,
    `load average before the run ${machine.load.toFixed(2)}${busy}`,
  ];
  return lines.map((line) => `- ${line}`).join("\n");
}

function targetTable(results: BenchResults): string {
  const verdict = (met: boolean | null) => (met === null ? "–" : met ? "yes" : "no");
  const rows = targets(results).map(({ text, measured, met }) => [text, measured, verdict(met)]);
  return table(["target", "measured", "met"], rows);
}

function speedTable(results: BenchResults, cells: readonly Cell[], per: Per): string {
  const rows = results.entrants.map((result) => [
    entrantLabel(result.entrant),
    ...cells.map((cell) => number(speed(result, cell, per))),
  ]);
  return table(["", ...cells.map(columnName)], rows);
}

function ratioSection(results: BenchResults, cells: readonly Cell[]): string[] {
  const rows: string[][] = [];
  for (const precision of results.plan.precisions) {
    for (const peer of results.plan.engines.filter((engine): engine is EngineName => engine !== "flywheel")) {
      for (const per of ["seconds", "cpuSeconds"] as const) {
        const values = cells.map((cell) => ratio(results, peer, precision, cell, per));
        if (values.every((value) => value === null)) continue;
        const label = `${precision} / ${peer}, ${per === "seconds" ? "by time" : "by CPU time"}`;
        rows.push([label, ...values.map((value) => (value === null ? "–" : value.toFixed(2)))]);
      }
    }
  }
  if (rows.length === 0) return [];
  return [
    "## Speed relative to the others",
    "Flywheel's speed divided by that of the other engine's fastest variant at the same precision.",
    table(["", ...cells.map(mixedColumnName)], rows),
  ];
}

/** The runtime's integer products alone beside whole steps of llama.cpp. */
function productsSection(results: BenchResults, cells: readonly Cell[]): string[] {
  if (results.int8Products.size === 0) return [];
  const shares = cells.map((cell) => {
    const products = productsSpeed(results, cell, "seconds");
    const theirs = best(results, "llama.cpp", "int8", cell, "seconds");
    return products === null || theirs === null ? "–" : (products / theirs).toFixed(2);
  });
  const text =
    "The linear layers of our int8 steps alone, as integer products of ONNX Runtime, without attention, norms and sampling. " +
    "The native module has its own products, so a whole step can be faster.";
  const rows = [
    ["products alone, tokens per second", ...cells.map((cell) => number(productsSpeed(results, cell, "seconds")))],
    ["divided by llama.cpp's whole steps", ...shares],
  ];
  return ["## Beside the runtime's integer products", text, table(["", ...cells.map(mixedColumnName)], rows)];
}

function memoryTable({ entrants }: BenchResults): string {
  // a peer is a program beside the process that is measured
  const measured = entrants.filter(({ entrant }) => peers.every((name) => name !== entrant.engine));
  const rows = measured.map(({ entrant, afterPrefill, atEnd }) => [
    entrantLabel(entrant),
    ...[afterPrefill.residentBytes, afterPrefill.peakBytes, atEnd.peakBytes].map(mebi),
  ]);
  return table(["MiB", "resident after the prefills", "peak until then, including loading", "peak of all cells"], rows);
}

/** Compares every engine with Flywheel in float32. Empty if that, or everything else, did not run. */
function agreementSection(results: BenchResults): string[] {
  const rows = agreements(results).map(({ result, largest, mean, sameTokens }) => [
    entrantLabel(result.entrant),
    largest.toPrecision(2),
    mean.toPrecision(2),
    `${sameTokens} of ${result.greedy.length}`,
  ]);
  if (rows.length === 0) return [];
  const different = strangers(results).map(({ result }) => entrantLabel(result.entrant));
  const verdict =
    different.length === 0
      ? `All float32 engines agree within ${LARGEST_F32_DIFFERENCE} nats: they computed the same model.`
      : `**${different.join(", ")} computed another model. This run compares nothing.**`;
  const head = ["against Flywheel f32", "largest difference (nats)", "mean", "same most likely tokens"];
  return ["## The same model?", "Log-probabilities of the same random text.", table(head, rows), verdict];
}

function failures({ entrants }: BenchResults): string[] {
  const failed = entrants.filter(({ failure }) => failure !== null);
  if (failed.length === 0) return [];
  const lines = failed.map(({ entrant, failure }) => `- ${entrantLabel(entrant)}: ${failure!.split("\n")[0]}`);
  return ["## Not finished", lines.join("\n")];
}

function columnName(cell: Cell): string {
  return cell.kind === "prefill" ? String(cell.tokens) : `${cell.batch} × ${cell.past}`;
}

/** Label of a cell in tables with both kinds of cells. */
function mixedColumnName(cell: Cell): string {
  return cell.kind === "prefill" ? `prefill ${cell.tokens}` : columnName(cell);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (fields: readonly string[]) => `| ${fields.join(" | ")} |`;
  return [line(head), `|---|${"---:|".repeat(head.length - 1)}`, ...rows.map(line)].join("\n");
}

function number(value: number | null): string {
  return value === null ? "–" : value < 10 ? value.toFixed(1) : value.toFixed(0);
}

function mebi(bytes: number): string {
  return bytes === 0 ? "–" : (bytes / 2 ** 20).toFixed(0);
}

function gibi(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
