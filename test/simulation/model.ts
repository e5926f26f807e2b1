// The model of the simulation: what it says follows from the tokens of a sequence and its adapter alone. It has real
// blocks of keys and values (fakes/fake-runner.ts), so whatever the engine mixes up changes what is said.

import type { EngineOutput, GenerateRequest } from "../../src/engine/contract.ts";
import { StepEngine } from "../../src/engine/engine.ts";
import type { ModelHost } from "../../src/engine/thread/engine-loop.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { type AdapterHost, type AdapterInfo, NoAdapterSlot } from "../../src/model/lora/adapter-host.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import type { Chunk, Runner } from "../../src/model/runner.ts";
import { ChoiceConstraints } from "../support/choice-constraint.ts";
import { EngineDriver } from "../support/engine-driver.ts";
import { FakeRunner, hashRow } from "../support/fake-runner.ts";
import type { World } from "./world.ts";

export const VOCABULARY = 64;

export interface ModelOptions {
  config: ModelConfig;
  maxLoras: number;
  numBlocks: number;
  positionsPerBlock: number;
  /** How likely a step fails. */
  failures: number;
}

/** What an error of a step says that the simulation caused. */
export const STEP_FAILED = "simulated: a step of the model failed";

/** Reads adapters from the disk. A version is the hash of the content. */
class Adapters implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank = 16;
  readonly slots: (string | null)[];
  readonly #config: ModelConfig;

  constructor(maxLoras: number, config: ModelConfig) {
    this.maxLoras = maxLoras;
    this.slots = new Array(maxLoras).fill(null);
    this.#config = config;
  }

  async load(folder: string): Promise<AdapterInfo & { slot: number }> {
    const { version, rank } = loadPeft(folder, this.#config);
    const at = this.slots.indexOf(this.slots.includes(version) ? version : null);
    if (at < 0) throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use`);
    this.slots[at] = version;
    return { version, rank, slot: at + 1 };
  }

  async unload(version: string): Promise<void> {
    const at = this.slots.indexOf(version);
    if (at >= 0) this.slots[at] = null;
  }

  slotOf(version: string): number | null {
    const at = this.slots.indexOf(version);
    return at < 0 ? null : at + 1;
  }
}

/** A number of the adapter's content: the slot says nothing of it. */
function contentOf(version: string | null): number {
  return version === null ? 0 : Number.parseInt(version.slice(0, 7), 16) + 1;
}

/** Takes time, and fails now and then. */
class SlowRunner implements Runner {
  readonly vocabSize = VOCABULARY;
  readonly maxPositions = 512;
  readonly positionsPerBlock: number;
  readonly numBlocks: number;
  readonly #inner: FakeRunner;
  readonly #world: World;
  readonly #adapters: Adapters;
  readonly #failures: number;

  constructor(world: World, adapters: Adapters, { numBlocks, positionsPerBlock, failures }: ModelOptions) {
    this.#world = world;
    this.#adapters = adapters;
    this.#failures = failures;
    this.numBlocks = numBlocks;
    this.positionsPerBlock = positionsPerBlock;
    this.#inner = newRunner(positionsPerBlock, numBlocks);
  }

  async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
    const world = this.#world;
    const known = chunks.map((chunk) => ({
      ...chunk,
      tokens: chunk.tokens.slice(),
      blocks: chunk.blocks.slice(),
      adapterSlot: contentOf(chunk.adapterSlot === 0 ? null : this.#adapters.slots[chunk.adapterSlot - 1]!),
    }));
    if (world.diesHere("a step of the model")) return new Promise(() => {});
    await world.pause(world.chance.between(1, 20), "step");
    if (world.fails(this.#failures)) {
      world.count("step fails");
      throw new Error(STEP_FAILED);
    }
    return this.#inner.forward(known);
  }

  copyBlock(from: number, to: number): void {
    this.#inner.copyBlock(from, to);
  }

  clearBlock(block: number, first: number): void {
    this.#inner.clearBlock(block, first);
  }
}

export function modelHost(world: World, options: ModelOptions): ModelHost {
  const adapters = new Adapters(options.maxLoras, options.config);
  const runner = new SlowRunner(world, adapters, options);
  return { runner, adapters, constraints: new ChoiceConstraints(VOCABULARY) };
}

function newRunner(positionsPerBlock: number, numBlocks: number): FakeRunner {
  return new FakeRunner({ row: hashRow, vocabSize: VOCABULARY, positionsPerBlock, numBlocks });
}

/** What a request gets that is alone in an engine with much room. */
export async function alone(request: GenerateRequest): Promise<EngineOutput[]> {
  const { adapter } = request;
  const adapters: AdapterHost = {
    ...{ maxLoras: 1, maxLoraRank: 16 },
    load: () => Promise.reject(new Error("nothing is loaded here")),
    unload: async () => {},
    slotOf: (version) => (version === adapter ? contentOf(adapter) : null),
  };
  const scheduling = { maxNumSeqs: 8, maxNumBatchedTokens: 1000, prefixCaching: false };
  const constraints = new ChoiceConstraints(VOCABULARY, false);
  return new EngineDriver(newRunner(64, 16), { ...scheduling, constraints, adapters }).run(request);
}

/** Checks the books of every engine after each of its steps. Returns a function that stops it. */
export function checkingBooks(world: World): () => void {
  const { step } = StepEngine.prototype;
  StepEngine.prototype.step = async function checked(this: StepEngine) {
    const outputs = await step.call(this);
    try {
      this.checkIntegrity();
    } catch (error) {
      world.violation(`an engine's books are wrong: ${(error as Error).message}`);
    }
    return outputs;
  };
  return () => {
    StepEngine.prototype.step = step;
  };
}
