// Defaults for sampling fields that a request omits. They come from the model's generation_config.json unless the
// operator overrides them: an omitted temperature is the one the model recommends, not 1.
import {
  type GenerationDefaults,
  parseGenerationConfig,
  readGenerationConfig,
} from "../../model/checkpoint/generation-config.ts";

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
