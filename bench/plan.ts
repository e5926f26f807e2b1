// What is measured: engines, precisions, lengths, batches and repetitions.

import type { Precision } from "./contenders/contender.ts";

export const engines = ["flywheel", "llama.cpp", "transformers.js"] as const;
/** Programs of the reader's own, named by --peer. */
export const peers = ["llama-batched-bench", "ollama"] as const;
export type PeerName = (typeof peers)[number];
export type EngineName = (typeof engines)[number] | PeerName;

export const precisions = ["f32", "f16", "int8", "int4"] as const satisfies readonly Precision[];

export type Cell = { kind: "prefill"; tokens: number } | { kind: "decode"; past: number; batch: number; steps: number };

export interface Plan {
  threads: number;
  repeats: number;
  cells: readonly Cell[];
  precisions: readonly Precision[];
  engines: readonly EngineName[];
  /** The path of the program, or the URL of the server. */
  peers: Readonly<Partial<Record<PeerName, string>>>;
}

/** Repetitions of a cell. A prompt gets more, because it is a single pass of under a second and a decode lap is many steps. */
export const lapsOf = ({ repeats }: Plan, cell: Cell): number => (cell.kind === "prefill" ? 3 * repeats : repeats);

/** An engine with one set of weights and settings: a row of the tables. */
export interface Entrant {
  engine: EngineName;
  precision: Precision;
  /** The engine's own name for the weight type. */
  weights: string;
  /** Settings that differ from the engine's defaults, for the label; null = none. */
  variant: string | null;
  settings: Readonly<Record<string, unknown>>;
}

const GGUF_WEIGHTS: Readonly<Record<Precision, string>> = { f32: "f32", f16: "f16", int8: "q8_0", int4: "q4_0" };
const ONNX_WEIGHTS: Readonly<Partial<Record<Precision, string>>> = { f32: "fp32", int8: "q8", int4: "q4" };

/** llama.cpp runs with and without flash attention, because neither is always faster. */
export function entrants(plan: Plan, precision: Precision): Entrant[] {
  const plain = { precision, variant: null, settings: {} };
  const all: Entrant[] = [];
  if (precision !== "f16") all.push({ ...plain, engine: "flywheel", weights: precision });
  const llama = { ...plain, engine: "llama.cpp", weights: GGUF_WEIGHTS[precision] } as const;
  all.push({ ...llama, settings: { flashAttention: true } });
  all.push({ ...llama, variant: "plain attention", settings: { flashAttention: false } });
  const { "llama-batched-bench": program, ollama: url } = plan.peers;
  const batched = { ...plain, engine: "llama-batched-bench", weights: GGUF_WEIGHTS[precision] } as const;
  all.push({ ...batched, settings: { program, flashAttention: true } });
  all.push({ ...batched, variant: "plain attention", settings: { program, flashAttention: false } });
  all.push({ ...plain, engine: "ollama", weights: GGUF_WEIGHTS[precision], settings: { url } });
  const onnx = ONNX_WEIGHTS[precision];
  if (onnx !== undefined) all.push({ ...plain, engine: "transformers.js", weights: onnx });
  return all.filter(({ engine }) => plan.engines.includes(engine));
}

export function entrantLabel({ engine, weights, variant }: Entrant): string {
  return variant === null ? `${engine} ${weights}` : `${engine} ${weights}, ${variant}`;
}

/** All cells, or a few with few repetitions for a first impression in about two minutes. */
export function cells(quick: boolean): Cell[] {
  const prefills = quick ? [512] : [128, 512, 1024];
  const pasts = quick ? [256] : [256, 1024];
  const batches = quick ? [1, 16] : [1, 4, 16, 32];
  const stepsOf = (batch: number) => (quick ? 8 : batch <= 4 ? 48 : 16);
  return [
    ...prefills.map((tokens): Cell => ({ kind: "prefill", tokens })),
    ...pasts.flatMap((past) => batches.map((batch): Cell => ({ kind: "decode", past, batch, steps: stepsOf(batch) }))),
  ];
}

export function cellName(cell: Cell): string {
  return cell.kind === "prefill" ? `prefill ${cell.tokens}` : `decode ${cell.batch} × ${cell.past}`;
}
