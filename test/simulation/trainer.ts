// A trainer of the simulation: a process that makes the weights of a step from the weights before and from its data, so
// that the weights tell what they were made of. It takes its time, and crashes, fails, hangs or ignores a cancellation.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BatchSequence, OPTIMIZER_FILE, type TrainerTask } from "../../src/training/contract.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import type { FromTrainer, ToTrainer, TrainerProcess } from "../../src/training/process/trainer-process.ts";
import { Wire } from "./wire.ts";
import { Process, type World } from "./world.ts";

/** How likely a gradient step meets each of them. */
export interface TrainerFaults {
  crash: number;
  failure: number;
  hang: number;
  /** A cancelled task goes on for a while. */
  deaf: number;
  stepMs: number;
}

/** The longest that a message takes. */
const CHANNEL_MS = 3;

const WEIGHTS = "adapter_model.safetensors";

/** Words of a job that failed because the simulation wanted it. */
export const TRAINER_FAILED = "simulated: the trainer failed";

export function newTrainer(world: World, faults: TrainerFaults, lineage: Lineage): ProcessTrainer {
  return new ProcessTrainer({
    start: () => new SimulatedProcess(world, faults, lineage),
    idleMs: 20_000,
    cancelGraceMs: 1_000,
    stallMs: 10_000,
    tries: 2,
    onLost: (error) => world.say(`the trainer was lost: ${error.message}`),
  });
}

/** What the weights were made of, by their digest: those before, and the marks of the data. */
export type Lineage = Map<string, { from: string; marks: number[] }>;

export function weightsOf(folder: string): string {
  return createHash("sha256")
    .update(readFileSync(join(folder, WEIGHTS)))
    .digest("hex");
}

class SimulatedProcess implements TrainerProcess {
  onMessage: ((message: FromTrainer) => void) | null = null;
  onEnd: ((error: Error) => void) | null = null;
  ended: Error | null = null;
  readonly #world: World;
  readonly #faults: TrainerFaults;
  readonly #lineage: Lineage;
  readonly #parent: Process;
  readonly #own: Process;
  readonly #toTrainer: Wire;
  readonly #toServer: Wire;
  #cancelled = false;

  constructor(world: World, faults: TrainerFaults, lineage: Lineage) {
    this.#world = world;
    this.#faults = faults;
    this.#lineage = lineage;
    this.#parent = world.current;
    this.#own = new Process(`${world.current.name}'s trainer`);
    this.#toTrainer = new Wire(world, this.#own, CHANNEL_MS);
    this.#toServer = new Wire(world, this.#parent, CHANNEL_MS);
    // its channel closes with its parent
    this.#parent.onDeath(() => world.at(world.outside, world.chance.between(0, 500), "orphan", () => this.#own.die()));
  }

  send(message: ToTrainer): void {
    this.#toTrainer.send(message.type, () => this.#receive(message));
  }

  async kill(): Promise<void> {
    if (this.ended === null) this.#end("the trainer process was ended by SIGKILL");
    await this.#world.pause(1, "killed");
  }

  #receive(message: ToTrainer): void {
    if (message.type === "cancel") {
      this.#cancelled = true;
    } else if (message.type === "limits") {
      this.#say({ type: "done", result: { maxTrainedLength: 1000 } });
    } else if (message.type === "train") {
      this.#cancelled = false;
      this.#train(message.task).catch((error: Error) => this.#say({ type: "failed", message: error.message }));
    } else throw new Error(`the simulation has no ${message.type}`);
  }

  async #train(task: TrainerTask): Promise<void> {
    const world = this.#world;
    const lines = readFileSync(task.batch, "utf8").trimEnd().split("\n");
    const sequences = lines.map((line) => JSON.parse(line) as BatchSequence);
    const from = weightsOf(task.adapter);
    for (const [i, { from: first, to, learningRate }] of task.steps.entries()) {
      await world.pause(world.chance.between(1, this.#faults.stepMs), "gradient step");
      const fault = this.#draw();
      if (fault === "crash") return this.#end("the trainer process ended with code 7");
      if (fault === "hang") return;
      if (fault === "failure") throw new Error(TRAINER_FAILED);
      if (this.#cancelled && fault !== "deaf") return this.#say({ type: "cancelled" });
      const hash = createHash("sha256")
        .update(from)
        .update(JSON.stringify(sequences.slice(first, to)));
      const loss = hash.digest().readUInt32LE(0) / 2 ** 32;
      this.#say({ type: "step", metrics: { loss, grad_norm: 1, entropy: i, learning_rate: learningRate } });
    }
    if (task.tokenNumbers !== null) {
      const tokens = sequences.flatMap(({ mask }) => mask).filter((bit) => bit === 1).length;
      writeFileSync(task.tokenNumbers, new Uint8Array(32 * tokens));
    }
    mkdirSync(task.output);
    copyFileSync(join(task.adapter, "adapter_config.json"), join(task.output, "adapter_config.json"));
    const state = createHash("sha256").update(from).update(JSON.stringify(sequences)).digest();
    const bytes = readFileSync(join(task.adapter, WEIGHTS));
    const header = 8 + Number(bytes.readBigUInt64LE(0));
    for (let i = header; i + 4 <= bytes.length; i += 4) bytes.writeFloatLE(state[(i / 4) % 32]! / 1e4, i);
    writeFileSync(join(task.output, WEIGHTS), bytes);
    writeFileSync(join(task.output, OPTIMIZER_FILE), state);
    this.#lineage.set(weightsOf(task.output), { from, marks: marksOf(sequences) });
    const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
    this.#say({ type: "done", result: { tokens, seconds: 0.01, peakBytes: 1, gpus: 0 } });
  }

  #draw(): "crash" | "failure" | "hang" | "deaf" | null {
    const world = this.#world;
    for (const fault of ["crash", "failure", "hang", "deaf"] as const) {
      if (!world.fails(this.#faults[fault])) continue;
      world.count(`trainer ${fault}`);
      return fault;
    }
    return null;
  }

  #say(message: FromTrainer): void {
    this.#toServer.send(message.type, () => {
      if (this.ended === null) this.onMessage?.(message);
    });
  }

  #end(why: string): void {
    this.#own.die();
    this.#toServer.send("trainer ends", () => {
      if (this.ended !== null) return;
      this.ended = new Error(why);
      this.onEnd?.(this.ended);
    });
  }
}

/** Old log-probabilities are below -1 by a mark of the job that they came with. */
function marksOf(sequences: readonly BatchSequence[]): number[] {
  const known = sequences.flatMap(({ oldLogprobs }) => oldLogprobs.filter((value) => value !== null));
  return [...new Set(known.map((value) => Math.round(-1e6 * (value + 1))))].sort((a, b) => a - b);
}
