// What every check works with: the replica, the model as Flywheel reads it, and a prompt.

import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { encodeChat } from "../../text/prompt.ts";
import type { TextModel } from "../../text/text-model.ts";
import type { Completion, Replica } from "./replica.ts";

export interface OurSide {
  text: TextModel;
  /** Possibly empty. */
  eosTokenIds: readonly number[];
  /** null for a model whose shape Flywheel does not know. */
  shape: ModelConfig | null;
  /** Largest number of log-probabilities that clients may ask for. */
  maxLogprobs: number;
  maxLoraRank: number;
  /** 0: unknown. */
  maxModelLen: number;
  /** The replica must see this folder under the same path. */
  data: string;
}

/** The base model of a replica. */
export interface ServedModel {
  name: string;
  maxModelLen: number;
  isFlywheel: boolean;
}

/** A model answers this at length. After a text that is no conversation it may say nothing but its end token. */
const QUESTION = "Tell me a story about a little robot that opens an old wooden door.";
/** How many log-probabilities the checks ask for. */
export const TOP = 5;

export class Bench {
  readonly replica: Replica;
  readonly ours: OurSide;
  readonly served: ServedModel;
  readonly prompt: readonly number[];
  #greedy: Promise<Completion> | null = null;

  private constructor(replica: Replica, ours: OurSide, served: ServedModel, prompt: readonly number[]) {
    this.replica = replica;
    this.ours = ours;
    this.served = served;
    this.prompt = prompt;
  }

  static async open(replica: Replica, ours: OurSide, served: ServedModel): Promise<Bench> {
    const { text } = ours;
    const prompt =
      text.defaultTemplate === null
        ? text.tokenizer.encode(QUESTION)
        : await encodeChat(text, { messages: [{ role: "user", texts: [QUESTION] }] });
    return new Bench(replica, ours, served, prompt);
  }

  /** 16 greedy tokens after the prompt, computed once. */
  greedy(): Promise<Completion> {
    this.#greedy ??= this.complete({ logprobs: TOP });
    return this.#greedy;
  }

  /** A request to the base model after the prompt. Greedy and with ignore_eos unless the fields say otherwise. */
  complete(fields: Readonly<Record<string, unknown>> = {}): Promise<Completion> {
    return this.replica.complete(this.served.name, this.prompt, fields);
  }
}
