// An engine whose model runs in another process, on the test's own thread: the fake process, or Python on the processor.

import { GpuLoop, MASK_SLOTS } from "../../src/engine/gpu/gpu-loop.ts";
import { GpuProcess, type GpuProcessOptions } from "../../src/engine/gpu/gpu-process.ts";
import { schedulingOptions } from "../../src/engine/scheduling.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { describeModel } from "../../src/model/describe.ts";
import { ChoiceConstraints } from "./choice-constraint.ts";
import type { EngineNeeds } from "./engine-contract.ts";
import type { FakeGpuOptions } from "./fake-gpu-process.ts";
import { InProcessEngine } from "./in-process-engine.ts";

const PAGE = 64;
const MAX_LORAS = 2;

export interface GpuSubject extends EngineNeeds {
  process: GpuProcessOptions;
  /** The model's checkpoint. */
  folder: string;
  stallMs?: number;
}

export interface StartedGpu {
  engine: InProcessEngine;
  process: GpuProcess;
  loop: GpuLoop;
  constraints: ChoiceConstraints;
}

/** Keys and values of one page, in float32. */
function pageBytes(folder: string): number {
  const { config, close } = openCheckpoint(folder);
  close();
  return PAGE * config.numLayers * 2 * config.numKvHeads * config.headDim * 4;
}

export async function startGpu({
  process: given,
  folder,
  scheduling = {},
  cacheTokens,
  stallMs,
}: GpuSubject): Promise<StartedGpu> {
  const checkpoint = openCheckpoint(folder);
  const { config } = checkpoint;
  const description = describeModel(checkpoint, config.maxPositions);
  checkpoint.close();
  const options = schedulingOptions({ maxNumBatchedTokens: 256, ...scheduling });
  const numBlocks = (cacheTokens ?? 64 * PAGE) / PAGE;
  const limits = { pageTokens: PAGE, maxPositions: config.maxPositions, maxRows: options.maxNumSeqs };
  const { process, ready } = await GpuProcess.start(given, {
    ...{ device: "cpu", dtype: "float32", memory: { gpuBytes: null, kvBytes: numBlocks * pageBytes(folder) } },
    limits: {
      ...{ ...limits, maxStepTokens: options.maxNumBatchedTokens, maxLoras: MAX_LORAS, maxLoraRank: 8 },
      ...{ prefixCaching: options.prefixCaching, maskSlots: MASK_SLOTS },
    },
    ...description,
  });
  const { vocabSize, maxPositions } = config;
  const room = { vocabSize, maxPositions, positionsPerBlock: PAGE, numBlocks: ready.number("pages") };
  const constraints = new ChoiceConstraints(vocabSize);
  let loop: GpuLoop | undefined;
  const engine = new InProcessEngine(
    (parts) => {
      loop = new GpuLoop({
        ...{ ...parts, process, config, room, constraints, maxLoras: MAX_LORAS, maxLoraRank: 8 },
        ...(stallMs === undefined ? {} : { stallMs }),
      });
      return loop;
    },
    { scheduling: options },
  );
  return { engine, process, loop: loop!, constraints };
}

/** The fake process, compiled by compile-fakes.ts to `url`. */
export function fakeProcess(
  url: string,
  fake: FakeGpuOptions = {},
  times: Partial<GpuProcessOptions> = {},
): GpuProcessOptions {
  const env = { FLYWHEEL_FAKE_GPU: JSON.stringify(fake) };
  return { command: [process.execPath, new URL(url).pathname], env, lastMs: 300, ...times };
}
