// Watches what an engine says: each request ends once, says nothing after its end, and says what it would have said alone.

import type { Engine, EngineOutput, Finish, GenerateRequest, Generation } from "../../src/engine/contract.ts";
import type { SampledToken } from "../../src/sampling/token-logprobs.ts";
import { alone, STEP_FAILED } from "./model.ts";
import type { World } from "./world.ts";

interface Choice {
  tokens: SampledToken[];
  finish: Finish | null;
  /** The caller wants no more of it. */
  stopped: boolean;
}

export class Witness {
  /** Requests that were compared to their end, and tokens. */
  compared = 0;
  tokens = 0;
  readonly #world: World;
  readonly #expected = new Map<string, Promise<EngineOutput[]>>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The engine, watched. `told`: requests that have begun and not ended. */
  watch(engine: Engine, open: Set<string>): Engine {
    return new Proxy(engine, {
      get: (target, key) => {
        if (key === "generate") return (request: GenerateRequest) => this.#watched(target, request, open);
        const value = Reflect.get(target, key) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #watched(engine: Engine, request: GenerateRequest, open: Set<string>): Generation {
    const name = `${this.#world.current.name} ${this.#world.events} ${open.size}`;
    const choices: Choice[] = Array.from({ length: request.n }, () => ({ tokens: [], finish: null, stopped: false }));
    const generation = engine.generate(request);
    const seen = { prefills: 0, reads: 0 };
    open.add(name);
    const stopAll = () => {
      for (const choice of choices) choice.stopped = true;
      open.delete(name);
      generation.abort();
    };
    const read = () => this.#read(generation, choices, seen, request, () => open.delete(name));
    return {
      stop: (index) => {
        choices[index]!.stopped = true;
        generation.stop(index);
      },
      abort: stopAll,
      [Symbol.asyncIterator]: read,
    };
  }

  async *#read(
    generation: Generation,
    choices: readonly Choice[],
    seen: { prefills: number; reads: number },
    request: GenerateRequest,
    ended: () => void,
  ): AsyncGenerator<EngineOutput> {
    const wrong = (what: string) =>
      this.#world.violation(`${what}: ${JSON.stringify(choices.map(({ finish }) => finish))}`);
    if (++seen.reads > 1) wrong("a generation was read twice");
    for await (const output of generation) {
      if (output.type === "prefill" && (++seen.prefills > 1 || choices.some(({ tokens }) => tokens.length > 0))) {
        wrong("a prefill is told twice or late");
      }
      if (output.type === "tokens") {
        const choice = choices[output.index]!;
        if (choice.finish !== null) wrong(`choice ${output.index} says something after its end`);
        if (choice.stopped) wrong(`choice ${output.index} says something after it was stopped`);
        choice.tokens.push(...output.tokens);
        this.tokens += output.tokens.length;
        if (output.finish !== null) {
          choice.finish = output.finish;
          await this.#compare(request, output.index, choice);
        }
      }
      yield output;
    }
    ended();
    if (choices.some(({ finish, stopped }) => finish === null && !stopped))
      wrong("a generation ended before its choices");
  }

  async #compare(request: GenerateRequest, index: number, { tokens, finish }: Choice): Promise<void> {
    this.compared++;
    const expected = (await this.#alone(request)).flatMap((output) =>
      output.type === "tokens" && output.index === index ? [output] : [],
    );
    const all = expected.flatMap((output) => output.tokens);
    const failed = finish?.reason === "error";
    if (failed && !isAllowed(finish)) this.#world.violation(`a request failed: ${JSON.stringify(finish)}`);
    const wanted = failed ? all.slice(0, tokens.length) : all;
    if (JSON.stringify(tokens) !== JSON.stringify(wanted)) {
      this.#world.violation(
        `a reply is not the one that the request gets alone: ${ids(tokens)} instead of ${ids(wanted)} after ${request.promptTokenIds}`,
      );
    }
    const end = expected.at(-1)!.finish;
    if (!failed && JSON.stringify(finish) !== JSON.stringify(end)) {
      this.#world.violation(`a reply ends with ${JSON.stringify(finish)}, and alone with ${JSON.stringify(end)}`);
    }
  }

  #alone(request: GenerateRequest): Promise<EngineOutput[]> {
    const { priority: _, cacheSalt: __, sampling, ...rest } = request;
    const key = JSON.stringify({ ...rest, ...sampling, seed: String(sampling.seed) });
    const known = this.#expected.get(key) ?? alone(request);
    this.#expected.set(key, known);
    return known;
  }
}

/** What the simulation has caused, and an engine that is lost. */
function isAllowed({ fault, message }: Finish): boolean {
  return fault === "unavailable" || message === STEP_FAILED || message === "the engine is closed";
}

function ids(tokens: readonly SampledToken[]): string {
  return `[${tokens.map(({ id }) => id)}]`;
}
