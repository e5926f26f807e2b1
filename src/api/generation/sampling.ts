// Fields of a request → how tokens are drawn.

import type { GenerateRequest } from "../../engine/contract.ts";
import { invalidCombination, invalidValue } from "../../errors/service-error.ts";
import {
  type GenerationDefaults,
  parseGenerationConfig,
  readGenerationConfig,
} from "../../model/checkpoint/config-files.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import { tokeniseBadWords } from "../../text/stop-strings.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { SharedFields } from "./fields.schema.ts";

// Bounds of the sampling parameters. They apply to the effective values, including the model's defaults.

type Bound = readonly [field: keyof SamplingParams, wire: string, allowed: string, holds: (value: number) => boolean];

const BOUNDS = [
  ["presencePenalty", "presence_penalty", "in [-2, 2]", (v) => v >= -2 && v <= 2],
  ["frequencyPenalty", "frequency_penalty", "in [-2, 2]", (v) => v >= -2 && v <= 2],
  ["repetitionPenalty", "repetition_penalty", "greater than 0", (v) => v > 0],
  ["temperature", "temperature", "in [0, 2]", (v) => v >= 0 && v <= 2],
  ["topP", "top_p", "in (0, 1]", (v) => v > 0 && v <= 1],
  ["topK", "top_k", "at least 1, or 0 or -1 for off", (v) => v >= -1],
  ["minP", "min_p", "in [0, 1]", (v) => v >= 0 && v <= 1],
  ["minTokens", "min_tokens", "0 or more", (v) => v >= 0],
] as const satisfies readonly Bound[];

/** The only fields that the error repeats in `param`. */
const NAMED = new Set(["temperature", "top_p"]);

function checkSamplingBounds(params: Pick<SamplingParams, (typeof BOUNDS)[number][0]>): void {
  for (const [field, wire, allowed, holds] of BOUNDS) {
    if (holds(params[field])) continue;
    throw invalidValue(`${wire} must be ${allowed}, got ${params[field]}.`, NAMED.has(wire) ? wire : null);
  }
}

// Defaults for sampling fields that a request omits. They come from the model's generation_config.json unless the
// operator overrides them: an omitted temperature is the one the model recommends, not 1.

/** Every field has a value, except that maxNewTokens may be null. `eosTokenIds` need not include the tokenizer's. */
export type SamplingDefaults = Pick<GenerationDefaults, "maxNewTokens"> & {
  [Field in Exclude<keyof GenerationDefaults, "maxNewTokens">]: NonNullable<GenerationDefaults[Field]>;
};

export const NEUTRAL_DEFAULTS: SamplingDefaults = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  repetitionPenalty: 1,
  maxNewTokens: null,
  eosTokenIds: [],
};

export interface DefaultsSources {
  /** The checkpoint's folder. */
  modelFolder: string;
  /** From config.json; used if generation_config.json has none. */
  configEosTokenIds: readonly number[];
  /** "auto" uses the model's file, "vllm" neutral values; anything else is a folder with the file. */
  generationConfig: string;
  /** Uses the file's field names, for example `{ top_p: 0.9 }`. */
  override: Readonly<Record<string, unknown>>;
}

export function loadSamplingDefaults(sources: DefaultsSources): SamplingDefaults {
  const { generationConfig, modelFolder } = sources;
  const model = readGenerationConfig(modelFolder);
  const chosen =
    generationConfig === "auto"
      ? model
      : generationConfig === "vllm"
        ? null
        : readGenerationConfig(generationConfig, { mustExist: true });
  const override = parseGenerationConfig("--override-generation-config", { ...sources.override });
  // The ids that end a reply belong to the model. They are not a preference, so they apply under "vllm" too.
  const eosTokenIds = override.eosTokenIds ?? model.eosTokenIds ?? sources.configEosTokenIds;
  return { ...decided(decided(NEUTRAL_DEFAULTS, chosen), override), eosTokenIds };
}

function decided(below: SamplingDefaults, above: GenerationDefaults | null): SamplingDefaults {
  const given = Object.entries(above ?? {}).filter(([, value]) => value !== null);
  return { ...below, ...(Object.fromEntries(given) as Partial<SamplingDefaults>) };
}

// Parameters for the engines of other servers: kv_transfer_params, engine_xargs (vllm_xargs) and, in generate requests,
// extra_args. They can name machines that a server of --engine-url then talks to, or load plug-ins of its operator, so
// only members that --allowed-engine-args names are passed on.

/** Generate requests may put any JSON into engine_xargs. */
export interface EngineArgFields {
  kv_transfer_params?: Readonly<Record<string, unknown>> | null | undefined;
  engine_xargs?: Readonly<Record<string, unknown>> | null | undefined;
  vllm_xargs?: Readonly<Record<string, unknown>> | null | undefined;
}

type Extra = NonNullable<GenerateRequest["extra"]>;

/** What the engine gets of them. */
export function engineArgs(body: EngineArgFields, allowed: readonly string[]): Extra {
  const kvTransferParams = only(body.kv_transfer_params, allowed);
  const engineArgs = only({ ...body.vllm_xargs, ...body.engine_xargs }, allowed);
  return { ...(kvTransferParams && { kvTransferParams }), ...(engineArgs && { engineArgs }) };
}

/** What it does not get, such as "kv_transfer_params.remote_host". */
export function leftOutArgs(body: EngineArgFields, allowed: readonly string[]): string[] {
  const { kv_transfer_params, engine_xargs, vllm_xargs } = body;
  return Object.entries({ kv_transfer_params, engine_xargs, vllm_xargs }).flatMap(([field, args]) =>
    Object.keys(args ?? {}).flatMap((name) => (allowed.includes(name) ? [] : [`${field}.${name}`])),
  );
}

/** null: nothing is left. */
function only(args: EngineArgFields["engine_xargs"], allowed: readonly string[]) {
  const names = allowed.filter((name) => Object.hasOwn(args ?? {}, name));
  return names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, args![name]]));
}

// Converts wire sampling fields to the engine's SamplingParams: applies the model's generation_config defaults, checks
// bounds and vocabulary, collects stop ids. Bad values are refused here, so the engine only sees valid parameters.

/** What is drawn from. */
export interface SampledModel {
  text: { tokenizer: Tokenizer };
  /** `vocabSize`: rows of the output layer, at least the tokenizer's size. */
  engine: { info: { vocabSize: number } };
  defaults: SamplingDefaults;
}

type Counts = Pick<SamplingParams, "maxTokens" | "logprobs" | "promptLogprobs">;

export function toSamplingParams(
  body: Omit<SharedFields, "engine_xargs">,
  { text: { tokenizer }, engine, defaults }: SampledModel,
  counts: Counts,
): SamplingParams {
  const { vocabSize } = engine.info;
  if (body.use_beam_search === true) {
    throw invalidValue("Beam search is not supported: leave use_beam_search out.", "use_beam_search");
  }
  const chosen = {
    temperature: body.temperature ?? defaults.temperature,
    topP: body.top_p ?? defaults.topP,
    topK: body.top_k ?? defaults.topK,
    minP: body.min_p ?? defaults.minP,
    repetitionPenalty: body.repetition_penalty ?? defaults.repetitionPenalty,
    frequencyPenalty: body.frequency_penalty ?? 0,
    presencePenalty: body.presence_penalty ?? 0,
    minTokens: body.min_tokens ?? 0,
  };
  checkSamplingBounds(chosen);
  if (chosen.minTokens > counts.maxTokens) {
    throw invalidCombination(
      `min_tokens (${chosen.minTokens}) is greater than the output budget (${counts.maxTokens}).`,
    );
  }
  const greedy = chosen.temperature === 0;
  const ignoreEos = body.ignore_eos ?? false;
  const inVocabulary = (id: number) => id >= 0 && id < vocabSize;
  const userStops = (body.stop_token_ids ?? []).filter(inVocabulary);
  const extraEos = defaults.eosTokenIds.filter((id) => id !== tokenizer.eosTokenId && inVocabulary(id));
  const eos = tokenizer.eosTokenId;
  return {
    ...chosen,
    ...counts,
    // Tiny temperatures overflow the softmax. vLLM raises them too.
    temperature: greedy ? 0 : Math.max(chosen.temperature, 0.01),
    topK: greedy ? 0 : Math.max(chosen.topK, 0),
    topP: greedy ? 1 : chosen.topP,
    minP: greedy ? 0 : chosen.minP,
    logitBias: readLogitBias(body.logit_bias, vocabSize),
    allowedTokenIds: readAllowedIds(body.allowed_token_ids, tokenizer.vocabSize),
    badWords: tokeniseBadWords(tokenizer, body.bad_words ?? []),
    badWordTexts: body.bad_words ?? [],
    eosTokenId: eos,
    stopTokenIds: unique(ignoreEos ? userStops : [...userStops, ...extraEos]),
    minTokensMask: unique([...(eos === null ? [] : [eos]), ...extraEos, ...userStops]),
    ignoreEos,
    seed: body.seed === -1n ? null : (body.seed ?? null),
    logprobTokenIds: readLogprobIds(body.logprob_token_ids, vocabSize, counts.logprobs !== null),
    repetitionDetection: readRepetitionDetection(body.repetition_detection),
    thinking: null,
  };
}

/** An error lists at most this many keys; a logit_bias may have thousands. */
const SHOWN_KEYS = 100;

function readLogitBias(bias: Record<string, number> | null | undefined, vocabSize: number): [number, number][] {
  const entries = Object.entries(bias ?? {});
  const notIds = entries.map(([key]) => key).filter((key) => !/^\s*[+-]?\d+\s*$/.test(key));
  if (notIds.length > 0) {
    const message = `logit_bias keys must be token ids; not so: ${notIds.slice(0, SHOWN_KEYS).join(", ")}.`;
    throw invalidValue(message, "logit_bias");
  }
  // Keys such as "7" and "+7" name the same id. The last one wins.
  const pairs = [...new Map(entries.map(([key, value]) => [Number(key), Math.min(100, Math.max(-100, value))]))];
  const outside = pairs.map(([id]) => id).filter((id) => id < 0 || id >= vocabSize);
  if (outside.length > 0) {
    const ids = outside.slice(0, SHOWN_KEYS).join(", ");
    const message = `logit_bias has token ids outside the vocabulary: ${ids}. The vocabulary size is ${vocabSize}.`;
    throw invalidValue(message, "logit_bias");
  }
  return pairs;
}

function readAllowedIds(ids: readonly number[] | null | undefined, vocabSize: number): number[] | null {
  if (ids === undefined || ids === null) return null;
  const outside = ids.find((id) => id < 0 || id >= vocabSize);
  if (ids.length === 0 || outside !== undefined) {
    const message =
      outside === undefined
        ? "allowed_token_ids must not be empty."
        : `allowed_token_ids has ${outside}, outside the vocabulary of ${vocabSize} tokens.`;
    throw invalidValue(message, "allowed_token_ids");
  }
  return unique(ids);
}

const MOST_LOGPROB_IDS = 128;

function readLogprobIds(
  ids: readonly number[] | null | undefined,
  vocabSize: number,
  hasLogprobs: boolean,
): number[] | null {
  if (ids === undefined || ids === null || ids.length === 0) return null;
  const refuse = (message: string) => invalidValue(message, "logprob_token_ids");
  if (!hasLogprobs) throw refuse("logprob_token_ids needs logprobs.");
  if (ids.length > MOST_LOGPROB_IDS) {
    throw refuse(`logprob_token_ids has ${ids.length} ids; at most ${MOST_LOGPROB_IDS} are allowed.`);
  }
  const outside = ids.find((id) => id < 0 || id >= vocabSize);
  if (outside === undefined) return unique(ids);
  throw refuse(`logprob_token_ids has ${outside}, outside the vocabulary of ${vocabSize} tokens.`);
}

export function readRepetitionDetection(
  wire: SharedFields["repetition_detection"],
): SamplingParams["repetitionDetection"] {
  const max = wire?.max_pattern_size ?? 0;
  const min = wire?.min_pattern_size ?? 0;
  const count = wire?.min_count ?? 0;
  if (max < 0 || min < 0 || min > max || (max > 0 && count < 2)) {
    const rule = "0 <= min_pattern_size <= max_pattern_size, and min_count >= 2 when max_pattern_size is set";
    throw invalidValue(`repetition_detection must have ${rule}.`);
  }
  return max === 0 ? null : { maxPatternSize: max, minPatternSize: min, minCount: count };
}

function unique(ids: readonly number[]): number[] {
  return [...new Set(ids)];
}
