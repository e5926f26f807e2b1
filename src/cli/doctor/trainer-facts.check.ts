// Judges what the trainer's Python told: its packages, the GPUs, the model, and the memory for it.

import { totalmem } from "node:os";
import type { Config } from "../../config/options.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import type { ModelNeeds, TrainerFacts } from "./trainer-facts.ts";

/** The oldest versions that the trainer runs with. */
const PACKAGES = { torch: "2.6", transformers: "5.0", safetensors: "0.4" } as const;

export function* checkFacts(facts: TrainerFacts, config: Config): Generator<Finding> {
  for (const name of Object.keys(PACKAGES) as (keyof typeof PACKAGES)[]) yield packageFinding(name, facts);
  if (facts.packages.torch.error !== null) return;
  yield gpuFinding(facts, config);
  if (facts.model === null) return;
  if (facts.model.error !== null) {
    const advice = "Use a Llama, Mistral, Qwen 2, Qwen 3 or Gemma 3 (text) checkpoint that is not quantized.";
    yield wrong("trained-model", facts.model.error, advice);
    return;
  }
  yield ok("trained-model", `${facts.model.type}, ${inWords(facts.model.parameters)} parameters`);
  yield memoryFinding(facts.model, facts.devices, config);
}

function packageFinding(name: keyof typeof PACKAGES, facts: TrainerFacts): Finding {
  const { version, error } = facts.packages[name];
  const oldest = PACKAGES[name];
  const install = `${facts.executable} -m pip install "${name}>=${oldest}"`;
  if (version === null) return wrong(name, `cannot be imported: ${error}`, `Install it: ${install}`);
  if (isOlder(version, oldest)) return wrong(name, `${version} is too old`, `Update it: ${install}`);
  return ok(name, version);
}

function gpuFinding({ devices, packages }: TrainerFacts, { trainerCommand }: Config): Finding {
  if (devices.length > 0) {
    const shown = devices.map(
      ({ name, freeBytes, totalBytes }) => `${name}, ${size(freeBytes)} of ${size(totalBytes)} free`,
    );
    return ok("gpu", shown.join("; "));
  }
  const fix = packages.torch.version!.includes("+cpu") ? "Install a torch with CUDA" : "Install the GPU's driver";
  if (/--nproc[-_]per[-_]node[= ]gpu\b/.test(trainerCommand)) {
    const advice = `${fix}, or give --trainer-command with --nproc-per-node=1 to train on the processor.`;
    return wrong("gpu", "no GPU, and --nproc-per-node=gpu needs one", advice);
  }
  return warning("gpu", "no GPU: it trains on the processor", `${fix}. --trainer onnx is made for processors.`);
}

/** Weights, adapter with optimizer, and the activations of one sequence, on the GPU with the least memory. */
function memoryFinding(needs: ModelNeeds, devices: TrainerFacts["devices"], config: Config): Finding {
  const onGpu = devices.length > 0;
  const free = onGpu ? Math.min(...devices.map(({ freeBytes }) => freeBytes)) : totalmem();
  const fixed = needs.weightBytes + needs.adapterBytes;
  const activations = onGpu ? (free - fixed) * needs.memoryShare : config.trainingMemoryBytes;
  const longest = Math.floor(activations / needs.rowBytes);
  const parts = `${size(needs.weightBytes)} of weights, ${size(needs.adapterBytes)} of adapter and optimizer`;
  const advice = "Use a smaller model or more memory, or end other programs that use it, such as an engine.";
  if (fixed > free || longest < 1) return wrong("memory", `${parts} do not fit ${size(free)}`, advice);
  const served = config.maxModelLen ?? needs.positions;
  const detail = `${parts}, ${size(needs.rowBytes)} per token of a sequence`;
  if (longest >= served) return ok("memory", `${detail}; ${served} tokens fit`);
  const more = onGpu ? advice : "Raise --training-memory-bytes.";
  return warning("memory", `${detail}; ${longest} of ${served} tokens fit`, `Longer sequences are left out. ${more}`);
}

/** Whether a version such as "2.10.0+cu130" is below one such as "2.6". */
export function isOlder(version: string, oldest: string): boolean {
  const numbers = (text: string) => text.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const [[major = 0, minor = 0], [oldestMajor = 0, oldestMinor = 0]] = [numbers(version), numbers(oldest)];
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

function inWords(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} billion`;
  return count >= 1e6 ? `${Math.round(count / 1e6)} million` : String(count);
}

function size(bytes: number): string {
  if (bytes < 2 ** 20) return `${Math.ceil(bytes / 2 ** 10)} KiB`;
  return bytes < 2 ** 30 ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
