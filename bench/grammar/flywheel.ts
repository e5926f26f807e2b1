// Flywheel's structured output, as a request uses it: compile, send the key to the engine thread, mask and accept.

import { compileConstraint } from "../../src/grammar/compile.ts";
import type { JsonOptions } from "../../src/grammar/constraint.ts";
import { GrammarError } from "../../src/grammar/grammar-error.ts";
import type { JsonValue } from "../../src/grammar/json-schema/keywords.ts";
import { GrammarConstraintFactory, grammarKey } from "../../src/grammar/match/constraint-factory.ts";
import { BrokenConstraintError } from "../../src/grammar/match/sequence-constraint.ts";
import { StepTimer, startCpuClock } from "./clocks.ts";
import type { EngineOptions, GrammarEngine, Job, Verdict } from "./engine.ts";
import { type Encode, longestMatch } from "./longest-match.ts";
import { loadVocabulary } from "./vocabulary.ts";

const JSON_DEFAULTS: JsonOptions = { compact: false, closedObjects: false, whitespacePattern: null };

class Flywheel implements GrammarEngine {
  readonly #factory: GrammarConstraintFactory;
  readonly #encode: Encode;
  readonly #stop: number;
  readonly #json: JsonOptions;

  constructor(factory: GrammarConstraintFactory, encode: Encode, stop: number, json: JsonOptions) {
    this.#factory = factory;
    this.#encode = encode;
    this.#stop = stop;
    this.#json = json;
  }

  async measure({ schema, instances }: Job): Promise<Verdict> {
    const parsed = JSON.parse(schema) as JsonValue;
    const cpu = startCpuClock();
    let key: string;
    try {
      const shape = { kind: "json_schema", schema: parsed, json: this.#json } as const;
      key = grammarKey(compileConstraint({ shape, reasoning: null }));
    } catch (error) {
      if (error instanceof GrammarError) return { compiled: false, compileMs: cpu(), reason: error.message };
      throw error;
    }
    this.#factory.create(key, [this.#stop], false);
    const compileMs = cpu();
    const timer = new StepTimer();
    let broken: string | null = null;
    const accepted = instances.map((text) => {
      try {
        return this.#follow(key, this.#encode(text), timer);
      } catch (error) {
        if (!(error instanceof BrokenConstraintError)) throw error;
        broken = error.message;
        return false;
      }
    });
    return { compiled: true, compileMs, accepted, microseconds: Float32Array.from(timer.microseconds), broken };
  }

  #follow(key: string, tokens: readonly number[], timer: StepTimer): boolean {
    const constraint = this.#factory.create(key, [this.#stop], false);
    for (const token of [...tokens, this.#stop]) {
      timer.start();
      const mask = constraint.mask()!;
      const legal = ((mask[token >>> 5]! >>> (token & 31)) & 1) === 1;
      if (legal) constraint.accept(token);
      timer.end();
      if (!legal) return false;
    }
    return true;
  }
}

export async function create({ vocabulary: name, jsonOptions }: EngineOptions): Promise<GrammarEngine> {
  const vocabulary = await loadVocabulary(name);
  const factory = new GrammarConstraintFactory(vocabulary);
  factory.prepare();
  return new Flywheel(factory, longestMatch(vocabulary), vocabulary.size - 1, { ...JSON_DEFAULTS, ...jsonOptions });
}
