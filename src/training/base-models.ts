// What training must know about the models this server can train: where their weights are, how they tokenise chats and
// which engine serves their policies. Made by the composition at start-up.

import type { AdapterSlots } from "../engine/adapter-slots.ts";
import type { Engine } from "../engine/contract.ts";
import { checkpointIdentity } from "../model/checkpoint/checkpoint.ts";
import type { WeightType } from "../model/linear/linear.ts";
import type { ChatEncoder } from "./data/chat-encoder.ts";
import type { LengthLimits } from "./data/length-limits.ts";

export interface BaseModel extends LengthLimits {
  /** The name clients give as base_model and as model. */
  name: string;
  /** Other names of the same model. */
  aliases: readonly string[];
  /** Checkpoint folder. */
  folder: string;
  /** As served, so that sampler and trainer compute the same numbers. */
  weights: WeightType;
  encoder: ChatEncoder;
  engine: Engine;
  /** Of the engine, for all who load adapters into it. */
  slots: AdapterSlots;
}

export class BaseModels {
  readonly #models: readonly BaseModel[];
  readonly #identities: ReadonlyMap<BaseModel, string>;

  constructor(models: readonly BaseModel[]) {
    this.#models = models;
    this.#identities = new Map(models.map((model) => [model, checkpointIdentity(model.folder)]));
  }

  names(): string[] {
    return this.#models.map(({ name }) => name);
  }

  /** Training reads the weights itself: other ones than those that are served would train another model. */
  assertUnchanged(model: BaseModel): void {
    if (checkpointIdentity(model.folder) === this.#identities.get(model)) return;
    throw new Error(
      `the files of the base model ${model.name} changed since the server started; it must be started anew`,
    );
  }

  get(name: string): BaseModel | null {
    return this.#models.find((model) => model.name === name || model.aliases.includes(name)) ?? null;
  }
}
