// The models that this server can train: where their weights are, how they tokenise chats, and which engine serves
// their policies. The composition at start-up makes them.

import type { AdapterSlots } from "../engine/adapter-slots.ts";
import type { Engine } from "../engine/contract.ts";
import { checkpointIdentity } from "../model/checkpoint/checkpoint.ts";
import { type ModelConfig, readModelConfig } from "../model/checkpoint/model-config.ts";
import { orAborted } from "../pacing/turns.ts";
import type { LimitsTask, TrainedWeights, Trainer } from "./contract.ts";
import type { LengthLimits } from "./data/token-sequence.ts";
import type { ChatEncoder } from "./data/trajectory.ts";
import { type StepSizes, stepSizes } from "./files/adapter-files.ts";
import { TrainingError } from "./training-error.ts";

export interface BaseModel {
  /** The name that clients send as base_model and as model. */
  name: string;
  /** Other names of the same model. */
  aliases: readonly string[];
  /** Checkpoint folder. */
  folder: string;
  /** The weight type that is served, so that sampler and trainer compute the same numbers. */
  weights: TrainedWeights;
  encoder: ChatEncoder;
  /** Longest sequence that is served, in tokens. */
  maxSequenceLength: number;
  /** How long a sequence may be to be trained. The first call asks the trainer; one that has to start may take minutes. */
  limits(signal?: AbortSignal): Promise<LengthLimits>;
  engine: Engine;
  /** The adapter slots of the engine, shared by everyone who loads adapters. */
  slots: AdapterSlots;
}

/** Asks the trainer once. If it fails, the next call asks again. */
export function limitsOf(trainer: Trainer, task: LimitsTask): BaseModel["limits"] {
  let asked: Promise<LengthLimits> | null = null;
  return (signal) => {
    asked ??= trainer.limits(task).then(
      ({ maxTrainedLength }) => ({ maxSequenceLength: task.maxSequenceLength, maxTrainedLength }),
      (error: Error) => {
        asked = null;
        throw new TrainingError("trainer_failed", { reason: error.message }, error.cause);
      },
    );
    return signal ? orAborted(asked, signal) : asked;
  };
}

export class BaseModels {
  readonly #models: readonly BaseModel[];
  readonly #identities: ReadonlyMap<BaseModel, string>;
  readonly #configs: ReadonlyMap<BaseModel, ModelConfig>;

  constructor(models: readonly BaseModel[]) {
    this.#models = models;
    this.#identities = new Map(models.map((model) => [model, checkpointIdentity(model.folder)]));
    this.#configs = new Map(models.map((model) => [model, readModelConfig(model.folder)]));
  }

  names(): string[] {
    return this.#models.map(({ name }) => name);
  }

  /** Throws if the files changed or are gone. Training would then train another model than the served one. */
  assertUnchanged(model: BaseModel): void {
    let cause: unknown;
    try {
      if (checkpointIdentity(model.folder) === this.#identities.get(model)) return;
    } catch (error) {
      cause = error;
    }
    throw new TrainingError("base_model_changed", { baseModel: model.name }, cause);
  }

  /** How large the files of an adapter of this rank are. */
  sizes(model: BaseModel, rank: number): StepSizes {
    return stepSizes(this.#configs.get(model)!, rank);
  }

  get(name: string): BaseModel | null {
    return this.#models.find((model) => model.name === name || model.aliases.includes(name)) ?? null;
  }
}
