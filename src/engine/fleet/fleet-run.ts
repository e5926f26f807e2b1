// One request of a fleet, wherever its choices run. All of them start on one replica. A choice that its replica lost
// goes on alone on another one, as `remainder` allows, and the caller sees one stream: prefill once, every token once.
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import type { Finish, GenerateRequest, Generation, TokensOutput } from "../contract.ts";
import { checkFinish } from "../finish.ts";
import { GenerationStream } from "../thread/generation-stream.ts";
import type { AdapterFleet } from "./adapter-fleet.ts";
import type { Dispatcher, Place, Ticket } from "./dispatcher.ts";
import type { Member } from "./member.ts";

// Continues a choice whose replica was lost: its tokens so far become part of the prompt of a new request. That is exact
// only if nothing in the engine depends on where the output began. Otherwise a choice can only start over, and only
// while the caller has seen nothing of it.

/**
 * The request for choice `index` alone, after it has produced `output`. null when it cannot go on. `prefilled`: the
 * caller has had the prefill output.
 */
function remainder(
  request: GenerateRequest,
  index: number,
  output: readonly number[],
  prefilled: boolean,
): GenerateRequest | null {
  if (output.length > 0 && !canResume(request, output)) return null;
  const { sampling, promptTokenIds } = request;
  return {
    ...request,
    promptTokenIds: output.length === 0 ? promptTokenIds : [...promptTokenIds, ...output],
    n: 1,
    legalSets: prefilled ? null : request.legalSets,
    sampling: {
      ...sampling,
      seed: sampling.seed === null ? null : BigInt.asIntN(64, sampling.seed + BigInt(index)),
      maxTokens: sampling.maxTokens - output.length,
      minTokens: Math.max(0, sampling.minTokens - output.length),
      promptLogprobs: prefilled ? null : sampling.promptLogprobs,
    },
  };
}

/** The repetition penalty is no obstacle: it treats prompt and output alike. */
function canResume({ sampling, grammar, extra }: GenerateRequest, output: readonly number[]): boolean {
  return (
    grammar === null &&
    // Transfers of keys and values, and parameters whose meaning only the replica knows.
    extra === undefined &&
    sampling.frequencyPenalty === 0 &&
    sampling.presencePenalty === 0 &&
    sampling.repetitionDetection === null &&
    sampling.thinking === null &&
    // A seed's random numbers depend on the position in the output.
    (sampling.seed === null || sampling.temperature === 0) &&
    !isInsideBadWord(sampling, output)
  );
}

/** Whether the output ends with the beginning of a bad word, whose end would then not be recognised. */
function isInsideBadWord({ badWords }: SamplingParams, output: readonly number[]): boolean {
  return badWords.some((word) => {
    for (let length = 1; length < word.length && length <= output.length; length++) {
      if (word.slice(0, length).every((id, i) => output[output.length - length + i] === id)) return true;
    }
    return false;
  });
}

/** Tries in a row that bring no token. A request that kills the engines it runs on stops there. */
const MOST_TRIES = 3;
/** The same for a choice that has had tokens. It has done no harm so far; its neighbour may have. */
const MOST_RESUMES = 6;

interface Choice {
  /** Ids of its tokens so far. */
  readonly output: number[];
  /** Tries since its last token, the present one included. */
  tries: number;
  /** Its part while it runs or waits; null when it has ended. */
  part: Part | null;
}

/** Choices that run together on one replica. */
interface Part {
  /** Index i of its request is choice choices[i]. */
  readonly choices: readonly number[];
  readonly request: GenerateRequest;
  readonly enteredAt: number;
  onPlace: Ticket["onPlace"];
  place: Place | null;
  generation: Generation | null;
  /** Whether it has brought a token. */
  fruitful: boolean;
}

export interface RunContext {
  readonly dispatcher: Dispatcher;
  readonly adapters: AdapterFleet;
  /** Called with the reason when a replica is left alone for a while. */
  readonly onFault: (error: Error) => void;
  /** Called when the run has ended. */
  readonly onEnd: (run: FleetRun) => void;
}

export class FleetRun {
  readonly stream: GenerationStream;
  readonly #request: GenerateRequest;
  readonly #rank: number;
  readonly #context: RunContext;
  readonly #choices: readonly Choice[];
  #prefilled = false;
  #usageTold = false;

  constructor(request: GenerateRequest, rank: number, context: RunContext) {
    this.#request = request;
    this.#rank = rank;
    this.#context = context;
    this.#choices = Array.from({ length: request.n }, () => ({ output: [], tries: 0, part: null }));
    this.stream = new GenerationStream(request.n, (index) => this.#cancel(index));
  }

  start(): void {
    this.#launch(
      this.#choices.map((_, index) => index),
      this.#request,
      null,
    );
  }

  #launch(choices: readonly number[], request: GenerateRequest, avoid: Member | null): void {
    const onPlace = (place: Place | null) => {
      part.place = place;
      void this.#run(part);
    };
    const enteredAt = performance.now();
    const part: Part = { choices, request, enteredAt, onPlace, place: null, generation: null, fruitful: false };
    for (const index of choices) {
      this.#choices[index]!.part = part;
      this.#choices[index]!.tries++;
    }
    this.#context.dispatcher.enter({ request, rank: this.#rank, avoid, onPlace });
  }

  async #run(part: Part): Promise<void> {
    const { place, request } = part;
    if (place === null) {
      this.#endAll(part, unavailable("No engine is ready. Try again later."));
      return;
    }
    const { member } = place;
    // Choices that were stopped while the others waited.
    for (const index of part.choices) if (!this.#isIn(part, index)) member.endChoice(place.job);
    try {
      if (request.adapter !== null) await this.#context.adapters.ensure(member, request.adapter);
    } catch (error) {
      // Only requests for this adapter suffer.
      this.#loseAll(part, "unloaded", (error as Error).message);
    }
    if (!part.choices.some((index) => this.#isIn(part, index))) return;
    try {
      await this.#follow(part, member);
      this.#loseAll(part, "lost", "the stream ended early");
    } catch (error) {
      this.#loseAll(part, "lost", (error as Error).message);
    }
  }

  async #follow(part: Part, member: Member): Promise<void> {
    const { place, choices, request } = part;
    if (choices.length === 1 && this.#choices[choices[0]!]!.output.length > 0) member.counts.resumes++;
    const generation = member.replica.generate(request);
    part.generation = generation;
    for (const [i, index] of choices.entries()) if (!this.#isIn(part, index)) generation.stop(i);
    for await (const output of generation) {
      if (output.type === "tokens") {
        this.#take(part, output);
        continue;
      }
      member.counts.prefixHitTokens += output.cachedTokens ?? 0;
      if (output.type === "prefill") {
        place!.job.uncomputed = 0;
        member.counts.promptTokens += request.promptTokenIds.length;
        if (this.#prefilled) continue;
        this.#prefilled = true;
        const waitedMs = place!.job.startedAt - part.enteredAt;
        const queued = output.queuedMs === undefined ? {} : { queuedMs: output.queuedMs + waitedMs };
        this.stream.push({ ...output, ...queued });
      } else if (!this.#usageTold && request.promptTokenIds === this.#request.promptTokenIds) {
        this.#usageTold = true;
        this.stream.push(output);
      }
    }
  }

  #take(part: Part, { index: at, tokens, finish }: TokensOutput): void {
    const index = part.choices[at]!;
    if (!this.#isIn(part, index)) return;
    const choice = this.#choices[index]!;
    if (tokens.length > 0) {
      const { member } = part.place!;
      if (!part.fruitful) member.succeeded();
      part.fruitful = true;
      member.counts.generatedTokens += tokens.length;
      choice.tries = 1;
      for (const { id } of tokens) choice.output.push(id);
    }
    const lost = finish?.fault === "lost" || finish?.fault === "unloaded";
    if (tokens.length > 0 || !lost) this.stream.push({ type: "tokens", index, tokens, finish: lost ? null : finish });
    if (finish === null) return;
    if (lost) this.#lose(part, index, finish);
    else this.#leave(part, index);
  }

  /** Loses the choices that the replica has not finished. */
  #loseAll(part: Part, fault: "lost" | "unloaded", message: string): void {
    const finish: Finish = { reason: "error", stopReason: null, message, fault };
    for (const index of part.choices) if (this.#isIn(part, index)) this.#lose(part, index, finish);
  }

  #lose(part: Part, index: number, { fault, message }: Finish): void {
    const { member } = part.place!;
    const { adapters, onFault } = this.#context;
    const { output, tries } = this.#choices[index]!;
    if (fault === "unloaded") adapters.missing(member, part.request.adapter!);
    else if (member.failed(!part.fruitful)) onFault(new Error(`${member.replica.name} failed a request: ${message}`));
    this.#leave(part, index);
    const ended = checkFinish(this.#request.sampling, output);
    const rest = remainder(this.#request, index, output, this.#prefilled);
    const most = output.length > 0 ? MOST_RESUMES : MOST_TRIES;
    if (ended !== null) this.#end(index, ended);
    else if (rest === null) this.#end(index, unavailable("The engine that ran this request was lost. Send it again."));
    else if (tries >= most) this.#end(index, unavailable(`Engines lost this request ${tries} times.`));
    // A replica that has only lost the adapter gets it again.
    else this.#launch([index], rest, fault === "unloaded" && tries === 1 ? null : member);
  }

  #endAll(part: Part, finish: Finish): void {
    for (const index of part.choices) {
      if (!this.#isIn(part, index)) continue;
      this.#choices[index]!.part = null;
      this.#end(index, finish);
    }
  }

  #end(index: number, finish: Finish): void {
    this.stream.push({ type: "tokens", index, tokens: [], finish });
    if (this.stream.ended) this.#context.onEnd(this);
  }

  /** The caller stops a choice, or all of them. */
  #cancel(stopped: number | null): void {
    const indexes = stopped === null ? this.#choices.keys() : [stopped];
    for (const index of indexes) {
      const { part } = this.#choices[index]!;
      if (part === null) continue;
      this.#leave(part, index);
      part.generation?.stop(part.choices.indexOf(index));
      if (!part.choices.some((other) => this.#isIn(part, other))) this.#context.dispatcher.withdraw(part.onPlace);
    }
    if (this.stream.ended) this.#context.onEnd(this);
  }

  #isIn(part: Part, index: number): boolean {
    return this.#choices[index]!.part === part;
  }

  /** The choice has ended on this replica. */
  #leave(part: Part, index: number): void {
    this.#choices[index]!.part = null;
    if (part.place !== null) {
      part.place.member.endChoice(part.place.job);
      this.#context.dispatcher.serve();
    }
    if (this.stream.ended) this.#context.onEnd(this);
  }
}

function unavailable(message: string): Finish {
  return { reason: "error", stopReason: null, message, fault: "unavailable" };
}
