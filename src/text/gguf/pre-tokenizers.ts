// How byte-level vocabularies cut a text into words before they merge. A GGUF file only names the way; the rules are here,
// in the form of tokenizer.json.

import type { JsonObject } from "../../json/json.ts";
import { TextFilesError } from "../tokenizer-files.ts";

export interface PreTokenizer {
  rules: JsonObject;
  /** A word that is a token is not merged. */
  ignoreMerges: boolean;
  /** Whether a text begins with the beginning-of-text token, unless the file says otherwise. */
  addsBos: boolean;
}

const CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/** Words with an upper-case beginning and a lower-case end. */
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";

/** `digits`: how many digits a word has at most. */
function llama3Words(digits: string): string {
  return `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;
}

function casedWords(ending: string, digits: string): string {
  const begin = "[^\\r\\n\\p{L}\\p{N}]?";
  const words = `${begin}${UPPER}*${LOWER}+${ending}|${begin}${UPPER}+${LOWER}*${ending}`;
  return `${words}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;
}

/** Each rule isolates what it matches; the next one works on the pieces. */
const RULES: Readonly<Record<string, readonly string[]>> = {
  gpt2: [GPT2],
  digits: ["\\p{N}", GPT2],
  llama3: [llama3Words("{1,3}")],
  qwen2: [llama3Words("")],
  gpt4o: [casedWords(`${CONTRACTIONS}?`, "{1,3}")],
  tekken: [casedWords("", "")],
  deepseekCoder: ["[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}"],
  deepseek3: [
    "\\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    `[!"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_\`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|${SPACES}`,
  ],
  // What llama.cpp does with files from before the names.
  unnamed: ["[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"],
};

/** Names in files, by rules. Those of the models that can be served. */
const NAMES: Readonly<Record<keyof typeof RULES, readonly string[]>> = {
  gpt2: ["gpt-2", "phi-2", "olmo", "mellum", "trillion"],
  digits: ["smollm", "starcoder", "refact", "minerva-7b"],
  llama3: ["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "dbrx", "smaug-bpe"],
  qwen2: ["qwen2", "deepseek-r1-qwen", "megrez"],
  gpt4o: ["gpt-4o"],
  tekken: ["tekken"],
  deepseekCoder: ["deepseek-coder"],
  deepseek3: ["deepseek-v3"],
  unnamed: ["default", ""],
};
const IGNORE_MERGES: readonly string[] = ["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken"];

/** `name`: the file's `tokenizer.ggml.pre`. */
export function preTokenizerNamed(path: string, name: string): PreTokenizer {
  const kind = Object.keys(NAMES).find((rules) => NAMES[rules]!.includes(name));
  if (kind === undefined) {
    const known = Object.values(NAMES).flat().filter(Boolean).join(", ");
    throw new TextFilesError(`${path}: the pre-tokenizer ${JSON.stringify(name)} is not known (known: ${known}).`);
  }
  const splits = RULES[kind]!.map((pattern) => ({
    type: "Split",
    pattern: { Regex: pattern },
    behavior: "Isolated",
    invert: false,
  }));
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: false };
  return {
    rules: { type: "Sequence", pretokenizers: [...splits, byteLevel] },
    ignoreMerges: IGNORE_MERGES.includes(name),
    addsBos: IGNORE_MERGES.includes(name),
  };
}
