// Turns rows of logits into tokens with the sampler and the constraint of each sequence. An error thrown here ends the
// sequence.
//
// A step gives one sampled token, then every token that the constraint forces (jump-forward). A forced token passes the
// same sampler with a mask of one legal id. So the request's other rules still hold: an id that bad_words or
// allowed_token_ids forbid is a contradiction, not output. Its log-probability is what sampling would report: 0, as in
// any one-token distribution, whatever the logits are. A row of zeros will therefore do, and forcing never changes the
// output, only the number of steps.

import type { ConstraintFactory, SequenceConstraint } from "../grammar/match/sequence-constraint.ts";
import { promptTokenLogprobs, promptTokenPreference } from "../sampling/logprobs.ts";
import { SequenceSampler } from "../sampling/sampler.ts";
import type { SampledToken } from "../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest } from "./contract.ts";
import { checkFinish } from "./finish.ts";
import type { ScheduledChunk } from "./scheduler.ts";

/** What it needs of a choice: of a sequence here, or of one whose rows of logits another process has (gpu/). */
export interface Choice {
  readonly request: { readonly request: GenerateRequest };
  readonly index: number;
  /** null until `prepare`. */
  sampler: SequenceSampler | null;
  constraint: SequenceConstraint | null;
}

export class TokenSource {
  readonly #vocabSize: number;
  readonly #constraints: ConstraintFactory | null;
  /** Stands in for the logits of forced positions. [vocab] */
  readonly #zeros: Float32Array;
  /** Bitset with one bit set while a forced token is sampled. [vocab / 32] */
  readonly #onlyOne: Int32Array;

  constructor(vocabSize: number, constraints: ConstraintFactory | null) {
    this.#vocabSize = vocabSize;
    this.#constraints = constraints;
    this.#zeros = new Float32Array(vocabSize);
    this.#onlyOne = new Int32Array(Math.ceil(vocabSize / 32));
  }

  /** Before a choice first runs, so that a constraint can work on its first mask while the prompt is computed. */
  prepare(choice: Choice): void {
    if (choice.sampler !== null) return;
    const { sampling, grammar, promptTokenIds } = choice.request.request;
    const { eosTokenId, stopTokenIds, ignoreEos } = sampling;
    choice.sampler = new SequenceSampler(sampling, choice.index, promptTokenIds, this.#vocabSize);
    if (grammar === null) return;
    if (this.#constraints === null) throw new Error("this engine has no grammars");
    const ends = eosTokenId === null ? stopTokenIds : [eosTokenId, ...stopTokenIds];
    choice.constraint = this.#constraints.create(grammar, ends, ignoreEos);
  }

  /** Adds the choice's next tokens to `out`; returns why it ended, or null. `row`: [vocab]. */
  extend(choice: Choice, row: Float32Array, out: SampledToken[]): Finish | null {
    const mask = choice.constraint?.mask() ?? null;
    if (mask !== null && mustEnd(choice, mask)) return { reason: "stop", stopReason: null };
    const token = choice.sampler!.sample(row, mask);
    return this.#follow(choice, token, out);
  }

  /** The same for a token that was sampled elsewhere. */
  take(choice: Choice, token: SampledToken, out: SampledToken[]): Finish | null {
    choice.sampler!.note(token.id);
    return this.#follow(choice, token, out);
  }

  /** Adds a token that was just sampled, and those that it forces. */
  #follow(choice: Choice, token: SampledToken, out: SampledToken[]): Finish | null {
    let finish = append(choice, token, out);
    if (choice.constraint === null || finish !== null) return finish;
    for (const id of choice.constraint.forced()) {
      if (isHeldBack(choice, id)) return { reason: "stop", stopReason: null };
      finish = append(choice, this.#sampleOnly(choice, id), out);
      if (finish !== null) break;
    }
    return finish;
  }

  /** Fills in what the request asks about its prompt: row i of the chunk is about the token after start + i. */
  describePrompt({ sequence, chunk }: ScheduledChunk, rows: Float32Array): void {
    const { promptLogprobs, preferences, prompt, request } = sequence.request;
    const count = request.sampling.promptLogprobs;
    const end = Math.min(chunk.start + chunk.tokens.length + 1, prompt.length);
    const firstSet = prompt.length - (request.legalSets?.length ?? 0);
    for (let about = chunk.start + 1, from = 0; about < end; about++, from += this.#vocabSize) {
      const row = rows.subarray(from, from + this.#vocabSize);
      const id = prompt[about]!;
      if (promptLogprobs !== null) promptLogprobs[about] = promptTokenLogprobs(row, id, count!);
      if (preferences === null || about < firstSet) continue;
      preferences[about - firstSet] = promptTokenPreference(row, id, request.legalSets![about - firstSet]!);
    }
  }

  #sampleOnly(choice: Choice, id: number): SampledToken {
    this.#onlyOne[id >>> 5] = 1 << (id & 31);
    try {
      return choice.sampler!.sample(this.#zeros, this.#onlyOne);
    } finally {
      this.#onlyOne[id >>> 5] = 0;
    }
  }
}

function append(choice: Choice, token: SampledToken, out: SampledToken[]): Finish | null {
  out.push(token);
  const finish = checkFinish(choice.request.request.sampling, choice.sampler!.outputTokens);
  if (finish === null) choice.constraint?.accept(token.id);
  return finish;
}

/** Whether min_tokens forbids this id now, because it would stop too early. */
function isHeldBack(choice: Choice, id: number): boolean {
  const { minTokens, minTokensMask } = choice.request.request.sampling;
  return choice.sampler!.outputTokens.length < minTokens && minTokensMask.includes(id);
}

/** A complete constraint leaves only stop ids. If min_tokens forbids those, the constraint wins and the text ends. */
export function mustEnd(choice: Choice, mask: Int32Array): boolean {
  let legal = 0;
  for (let at = 0; at < mask.length; at++) {
    for (let rest = mask[at]!; rest !== 0; rest &= rest - 1) {
      if (!isHeldBack(choice, at * 32 + 31 - Math.clz32(rest & -rest))) return false;
      legal++;
    }
  }
  return legal > 0;
}
