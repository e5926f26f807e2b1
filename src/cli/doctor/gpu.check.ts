// Whether this machine has what `--device cuda` needs: a Python with PyTorch, what triton compiles with, a GPU and its
// memory. Asks that Python, as a start that failed would.

import { askPython, type GpuFacts, lacksOf } from "../../app/gpu-engine.ts";
import { torchDtype } from "../../app/trainer.ts";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { bytesText } from "../../system/text.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

/** Of what is free, if --gpu-memory does not say. */
const SHARE = 0.9;
/** Beside weights, cache and adapters: workspaces, the runtime's own. */
const BESIDE_BYTES = 3 * 2 ** 30;

/** `parameters`: of the model that will be served. */
export async function* checkGpu(config: Config, parameters: number): AsyncGenerator<Finding> {
  let facts: GpuFacts;
  try {
    facts = await askPython(config.python);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield wrong("python", error.message, "--python PATH names another one.");
    return;
  }
  const onGpu = config.device === "cuda";
  const lacks = lacksOf(facts, onGpu);
  const lacking = new Set(lacks.map(({ check }) => check));
  for (const [check, detail] of presentOf(facts, onGpu)) if (!lacking.has(check)) yield ok(check, detail);
  for (const { check, detail, advice } of lacks) yield wrong(check, detail, advice);
  const [device] = facts.devices;
  if (!onGpu || device === undefined || lacking.has("gpu")) return;
  const capability = device.capability.join(".");
  const shown = `${device.name}, compute capability ${capability}`;
  const advice =
    "The engine was tested with torch on the processor, and has never run on a GPU: try it before you rely on it.";
  yield warning("gpu", shown, advice);
  yield memoryFinding(config, device, parameters);
}

function presentOf({ python, executable, packages, compiler, headers, kernelCache, driver }: GpuFacts, onGpu: boolean) {
  const present: [string, string | null][] = [
    ["python", `${python} at ${executable}`],
    ["torch", packages.torch.version],
  ];
  if (onGpu) {
    const cache = kernelCache.folder;
    present.push(["triton", packages.triton.version], ["compiler", compiler], ["headers", headers]);
    present.push(["kernel-cache", cache], ["driver", driver && `for CUDA ${driver} and older`]);
  }
  return present.filter((each): each is [string, string] => each[1] !== null);
}

function memoryFinding(config: Config, device: GpuFacts["devices"][number], parameters: number): Finding {
  const { freeBytes, totalBytes } = device;
  const weights = parameters * (torchDtype(config) === "bfloat16" ? 2 : 4);
  const taken = config.gpuMemory ?? SHARE * freeBytes;
  const seen = `${bytesText(freeBytes)} of ${bytesText(totalBytes)} free, ${bytesText(weights)} for the weights`;
  if (taken > freeBytes) {
    return wrong(
      "gpu-memory",
      seen,
      `--gpu-memory ${config.gpuMemory} is more than is free; nvidia-smi says who has it.`,
    );
  }
  const left = taken - weights - BESIDE_BYTES;
  if (left > 0) return ok("gpu-memory", `${seen}, about ${bytesText(left)} for keys, values and adapters`);
  return wrong("gpu-memory", seen, "Use a smaller model, or end what has the memory: nvidia-smi says who.");
}
