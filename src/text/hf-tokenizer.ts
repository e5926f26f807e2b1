// The tokenizer of a Hugging Face checkpoint folder (tokenizer.json). @huggingface/tokenizers normalises, pre-tokenises and
// post-processes. BPE merging, added tokens, bytes and decoding are ours: answers need the exact bytes of each token, and
// prompts need bounded time. Decoding never "cleans up" spaces.

import { isUtf8 } from "node:buffer";
import { isJsonObject, type JsonObject } from "../json/json.ts";
import { Detokenizer } from "./detokenizer.ts";
import { type AddedToken, AddedTokenSplitter, readSpecialTokens, type SpecialTokens } from "./encoding/added-tokens.ts";
import { BpeEncoder, type BpeModelJson } from "./encoding/bpe-encoder.ts";
import { libraryEncoder, libraryStages } from "./encoding/library.ts";
import { readPieceSpelling, Vocabulary } from "./encoding/vocabulary.ts";
import { createWordSplitter, planSplitting } from "./encoding/word-splitter.ts";
import { withoutMarks } from "./literal-text.ts";
import type { DecodeOptions, EncodeOptions, Tokenizer } from "./tokenizer-contract.ts";
import { type TextFiles, TextFilesError } from "./tokenizer-files.ts";

/** Yields after every piece of work. May stop as soon as there are more than `maxTokens` ids. */
type Encode = (text: string, maxTokens: number, hasMarks: boolean) => Generator<undefined, number[]>;

/** A step ends with the word that reaches this many ids: about a millisecond. */
const IDS_PER_STEP = 1024;

export class HfTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly eosTokenId: number | null;
  readonly kind: "byte_level" | "sentencepiece";
  readonly stripsLeadingSpace: boolean;
  /** bos_token, eos_token, ... -> their text. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Bytes of the longest token. A text of `n` tokens has at most `n` times as many characters. */
  readonly longestToken: number;
  /** Absent where the library finds them. */
  readonly addedTokens?: readonly AddedToken[];
  readonly #vocabulary: Vocabulary;
  readonly #encode: Encode;
  /** What addSpecialTokens puts around a text. */
  readonly #before: readonly number[];
  readonly #after: readonly number[];

  constructor(files: TextFiles) {
    const model = files.tokenizer.model;
    if (!isJsonObject(model)) throw new TextFilesError("tokenizer.json has no model.");
    const special = readSpecialTokens(files);
    const { spelling, stripsLeadingSpace } = readPieceSpelling(files.tokenizer);
    const modelVocab = readVocab(model);
    this.#vocabulary = new Vocabulary(modelVocab, special.added, spelling);
    this.vocabSize = this.#vocabulary.size;
    this.longestToken = this.#vocabulary.longestToken;
    this.kind = spelling.kind;
    this.stripsLeadingSpace = stripsLeadingSpace;
    this.specialTokens = special.roles;
    this.eosTokenId = this.#eosId(files);
    const encode = createBpeEncode(files, model, modelVocab, special, spelling.kind);
    if (encode !== null) this.addedTokens = special.added;
    this.#encode = encode ?? inOneStep(libraryEncoder(files.tokenizer, files.tokenizerConfig, special.added));
    [this.#before, this.#after] = this.#readFrame(files);
  }

  encode(text: string, options: EncodeOptions = {}): number[] {
    return drained(this.encodeSteps(text, options));
  }

  *encodeSteps(text: string, options: EncodeOptions = {}): Generator<undefined, number[]> {
    const ids = yield* this.#encode(text, options.maxTokens ?? Number.POSITIVE_INFINITY, options.hasMarks ?? false);
    return options.addSpecialTokens ? [...this.#before, ...ids, ...this.#after] : ids;
  }

  decode(ids: readonly number[], options: DecodeOptions = {}): string {
    return drained(this.decodeSteps(ids, options));
  }

  *decodeSteps(ids: readonly number[], options: DecodeOptions = {}): Generator<undefined, string> {
    const detokenizer = new Detokenizer(this, { promptTokenIds: [], ...options });
    const shown = options.skipSpecialTokens ? ids.filter((id) => !this.isSpecial(id)) : ids;
    let text = "";
    for (let at = 0, stepEnds = IDS_PER_STEP; at < shown.length; ) {
      const run = this.#byteRun(shown, at);
      // As in Rust's tokenizers: one invalid byte makes a whole run of <0xNN> tokens unreadable.
      if (run > 0 && !isUtf8(Uint8Array.from(shown.slice(at, at + run), (id) => this.bytes(id)[0]!))) {
        detokenizer.pushUnreadable(run);
        at += run;
      } else for (const end = at + Math.max(1, run); at < end; at++) text += detokenizer.push(shown[at]!);
      if (at < stepEnds) continue;
      yield;
      stepEnds = at + IDS_PER_STEP;
    }
    return text + detokenizer.incomplete();
  }

  /** How many <0xNN> tokens there are from here on. */
  #byteRun(ids: readonly number[], start: number): number {
    let end = start;
    while (end < ids.length && this.#vocabulary.isByte(ids[end]!)) end++;
    return end - start;
  }

  piece(id: number): string | null {
    return this.#vocabulary.piece(id);
  }

  bytes(id: number): Uint8Array {
    return this.#vocabulary.bytes(id);
  }

  idOf(piece: string): number | null {
    return this.#vocabulary.idOf(piece);
  }

  idOfBytes(bytes: ArrayLike<number>): number | null {
    return this.#vocabulary.idOfBytes(bytes);
  }

  isSpecial(id: number): boolean {
    return this.#vocabulary.isSpecial(id);
  }

  #eosId(files: TextFiles): number | null {
    const text = this.specialTokens.eos_token;
    const named = text === undefined ? null : this.#vocabulary.idOf(text);
    if (named !== null) return named;
    const declared = files.generationConfig.eos_token_id ?? files.modelConfig.eos_token_id;
    const first = Array.isArray(declared) ? declared[0] : declared;
    return typeof first === "number" && this.#vocabulary.piece(first) !== null ? first : null;
  }

  /** Learns the frame by post-processing one stand-in token. */
  #readFrame(files: TextFiles): [number[], number[]] {
    const library = libraryStages(files.tokenizer, null);
    const standIn = "\0text";
    const framed = library.post_processor?.post_process([standIn], null, true).tokens ?? [standIn];
    const at = framed.indexOf(standIn);
    const ids = (pieces: string[]): number[] =>
      pieces.map((piece) => {
        const id = this.#vocabulary.idOf(piece);
        if (id === null) throw new TextFilesError(`tokenizer.json adds the token ${piece}, which has no id.`);
        return id;
      });
    return [ids(framed.slice(0, at)), ids(framed.slice(at + 1))];
  }
}

function drained<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** null if only the library can run the model or its pre-tokenizer. */
function createBpeEncode(
  files: TextFiles,
  model: JsonObject,
  modelVocab: ReadonlyMap<string, number>,
  special: SpecialTokens,
  kind: "byte_level" | "sentencepiece",
): Encode | null {
  const plan = planSplitting(files.tokenizer.pre_tokenizer);
  if (!plan || !isPlainBpe(model) || (plan.byteLevel !== null) !== (kind === "byte_level")) return null;
  const library = libraryStages(files.tokenizer, plan.libraryStages);
  const normalizer = library.normalizer;
  const words = createWordSplitter(plan, library.pre_tokenizer);
  const encoder = new BpeEncoder(model as unknown as BpeModelJson, modelVocab, kind === "byte_level");
  const late = special.added.filter((token) => token.normalized);
  const early = special.added.filter((token) => !token.normalized);
  const rawSplitter = new AddedTokenSplitter(early.map((token) => ({ spelling: token.content, token })));
  const normalSplitter = new AddedTokenSplitter(
    late.map((token) => ({ spelling: normalizer?.normalize(token.content) ?? token.content, token })),
  );
  return function* (text, maxTokens, hasMarks) {
    const ids: number[] = [];
    // Section 0 is the very beginning of the text.
    let index = 0;
    let stepEnds = IDS_PER_STEP;
    for (const section of rawSplitter.split(text)) {
      if (ids.length > maxTokens) return ids;
      if (typeof section === "number") {
        ids.push(section);
        index++;
        continue;
      }
      for (const part of normalSplitter.split(normalizer ? normalizer.normalize(section) : section)) {
        if (typeof part === "number") {
          ids.push(part);
          index++;
          continue;
        }
        for (const word of words(hasMarks ? withoutMarks(part) : part, index++)) {
          if (ids.length > maxTokens) return ids;
          encoder.encodeWord(word, ids);
          if (ids.length < stepEnds) continue;
          yield;
          stepEnds = ids.length + IDS_PER_STEP;
        }
      }
    }
    return ids;
  };
}

function inOneStep(encode: (text: string) => number[]): Encode {
  // biome-ignore lint/correctness/useYield: nothing to wait for
  return function* (text) {
    return encode(text);
  };
}

function isPlainBpe(model: JsonObject): boolean {
  const isBpe = model.type === "BPE" || (model.type === undefined && Array.isArray(model.merges));
  return isBpe && !model.end_of_word_suffix && !model.continuing_subword_prefix;
}

/** BPE vocabularies are objects, Unigram ones are [piece, score] lists in id order. */
function readVocab(model: JsonObject): Map<string, number> {
  if (Array.isArray(model.vocab)) return new Map(model.vocab.map((entry, id) => [String(entry[0]), id]));
  if (isJsonObject(model.vocab)) return new Map(Object.entries(model.vocab).map(([piece, id]) => [piece, Number(id)]));
  throw new TextFilesError("tokenizer.json has no vocabulary.");
}
