// Values of sampling fields that a request leaves out. They come from the model's generation_config.json, as the operator
// wants it used: an omitted temperature is the one the model recommends, not 1.
import {
  type GenerationDefaults,
  parseGenerationConfig,
  readGenerationConfig,
} from "../../model/checkpoint/generation-config.ts";

/** Every value decided. */
export interface SamplingDefaults {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  repetitionPenalty: number;
  maxNewTokens: number | null;
  /** End-of-sequence ids of the model; the tokenizer's own may or may not be among them. */
  eosTokenIds: readonly number[];
}

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
  /** Folder of the checkpoint. */
  modelFolder: string;
  /** From config.json. They count if generation_config.json names none. */
  configEosTokenIds: readonly number[];
  /** "auto": the model's file; "vllm": neutral values; otherwise a folder with the file. */
  generationConfig: string;
  /** In the file's own spelling, for example `{ top_p: 0.9 }`. */
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
  // Which ids end a reply is a fact of the model, not a preference: they apply under "vllm" too.
  const eosTokenIds = override.eosTokenIds ?? model.eosTokenIds ?? sources.configEosTokenIds;
  return { ...decided(decided(NEUTRAL_DEFAULTS, chosen), override), eosTokenIds };
}

function decided(below: SamplingDefaults, above: GenerationDefaults | null): SamplingDefaults {
  const given = Object.entries(above ?? {}).filter(([, value]) => value !== null);
  return { ...below, ...(Object.fromEntries(given) as Partial<SamplingDefaults>) };
}
