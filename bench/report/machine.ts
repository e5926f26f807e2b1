// Describes the machine and the software of a run.

import { readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";
import { nativeModule, nativeModuleKind, nativeModuleMissing } from "../../src/graph/native/native-module.ts";
import { peerVersion } from "../contenders/peer.ts";

export interface Machine {
  cpu: string;
  /** Instruction sets that decide the speed of byte products. Empty if the system does not report them. */
  instructionSets: readonly string[];
  /** What computes our models: the native module and its kind, or the runtime's operations and why. */
  kernels: string;
  cores: number;
  memoryBytes: number;
  system: string;
  node: string;
  /** Package -> version; null = not installed. */
  packages: Readonly<Record<string, string | null>>;
  /** Load average of the minute before the run; 0 if the system does not report it. */
  load: number;
}

/** Keyed by their names in /proc/cpuinfo. */
const INSTRUCTION_SETS: Readonly<Record<string, string>> = {
  amx_int8: "AMX",
  avx512_vnni: "AVX-512 VNNI",
  avx_vnni: "AVX VNNI",
  avx512f: "AVX-512",
  avx2: "AVX2",
  sme: "SME",
  i8mm: "I8MM",
  asimddp: "dot products",
};

/** From bench/dist/bench/report/ to the package's root. */
const ROOT = new URL("../../../../", import.meta.url);

export function describeMachine(): Machine {
  const model = cpus()[0]?.model.trim();
  return {
    cpu: model === undefined || model === "" || model === "unknown" ? `${arch()} processor` : model,
    instructionSets: instructionSets(),
    kernels: nativeModule === null ? `graph (${nativeModuleMissing})` : `native (${nativeModuleKind})`,
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    system: `${type()} ${release()} ${arch()}`,
    node: process.version,
    packages: {
      flywheel: versionIn("package.json"),
      "onnxruntime-node": versionIn("node_modules/onnxruntime-node/package.json"),
      "node-llama-cpp": peerVersion("node-llama-cpp"),
      "@huggingface/transformers": peerVersion("@huggingface/transformers"),
      "onnxruntime-node of @huggingface/transformers": peerVersion("onnxruntime-node"),
    },
    load: loadavg()[0]!,
  };
}

function instructionSets(): string[] {
  if (type() !== "Linux") return [];
  const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]?.trim().split(/\s+/);
  return Object.entries(INSTRUCTION_SETS).flatMap(([flag, name]) => (flags?.includes(flag) ? [name] : []));
}

/** A name for files: "intel-xeon-processor-2-cores". */
export function machineSlug({ cpu, cores }: Machine): string {
  const name = cpu
    .toLowerCase()
    .replace(/\((r|tm)\)/g, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  return `${name}-${cores}-cores`;
}

function versionIn(path: string): string {
  return (JSON.parse(readFileSync(new URL(path, ROOT), "utf8")) as { version: string }).version;
}
