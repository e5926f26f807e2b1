// A section of text → words for the BPE model. This is the pre-tokenizer of tokenizer.json without its byte mapping, which
// the encoder does itself. @huggingface/tokenizers runs every splitting rule but the byte-level one and that of Metaspace.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { LibraryStages } from "./library.ts";

/** `sectionIndex` counts the sections between added tokens; 0 is the beginning of the text. */
export type WordSplitter = (section: string, sectionIndex: number) => string[];

/** The GPT-2 pattern, with whitespace as Unicode defines it (JavaScript's \s counts U+FEFF and misses U+0085). */
const gpt2Words =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

export interface SplitPlan {
  /** What the library has to run, as tokenizer.json describes it; null = nothing. */
  libraryStages: JsonObject | null;
  /** The byte-level stage at the end, if there is one. */
  byteLevel: { prefixSpace: boolean; useRegex: boolean } | null;
  /** The space mark of a Metaspace stage that begins a word at every mark; null: none does. */
  wordMark: string | null;
}

/** null when a byte-level stage is anywhere but at the end: such a pre-tokenizer cannot be taken apart. */
export function planSplitting(preTokenizer: unknown): SplitPlan | null {
  if (!isJsonObject(preTokenizer)) return { libraryStages: null, byteLevel: null, wordMark: null };
  const stages = preTokenizer.type === "Sequence" ? flatten(preTokenizer) : [preTokenizer];
  const at = stages.findIndex((stage) => stage.type === "ByteLevel");
  if (at >= 0 && at < stages.length - 1) return null;
  const others = (at < 0 ? stages : stages.slice(0, at)).map(digitsAsSplit);
  const last = at < 0 ? null : stages[at]!;
  const metaspace = others.find((stage) => stage.type === "Metaspace" && stage.split !== false);
  return {
    libraryStages: others.length === 0 ? null : { type: "Sequence", pretokenizers: others },
    byteLevel: last && { prefixSpace: last.add_prefix_space === true, useRegex: last.use_regex !== false },
    wordMark: typeof metaspace?.replacement === "string" ? metaspace.replacement : null,
  };
}

export function createWordSplitter(plan: SplitPlan, library: LibraryStages["pre_tokenizer"]): WordSplitter {
  const { byteLevel, wordMark } = plan;
  return (section, sectionIndex) => {
    const whole = library ? library.pre_tokenize(section, { section_index: sectionIndex }) : [section];
    const words = wordMark === null ? whole : whole.flatMap((word) => splitBefore(word, wordMark));
    if (!byteLevel || (!byteLevel.prefixSpace && !byteLevel.useRegex)) return words;
    return words.flatMap((word) => {
      const text = byteLevel.prefixSpace && !word.startsWith(" ") ? ` ${word}` : word;
      return byteLevel.useRegex ? (text.match(gpt2Words) ?? []) : [text];
    });
  };
}

function splitBefore(word: string, mark: string): string[] {
  const [before = "", ...parts] = word.split(mark);
  const marked = parts.map((part) => mark + part);
  return before === "" ? marked : [before, ...marked];
}

/** Digits are all Unicode numbers ("½" too), which the library's own rule for them is not. */
function digitsAsSplit(stage: JsonObject): JsonObject {
  if (stage.type !== "Digits") return stage;
  const pattern = { Regex: stage.individual_digits === true ? "\\p{N}" : "\\p{N}+" };
  return { type: "Split", pattern, behavior: "Isolated", invert: false };
}

function flatten(sequence: JsonObject): JsonObject[] {
  const stages = Array.isArray(sequence.pretokenizers) ? sequence.pretokenizers.filter(isJsonObject) : [];
  return stages.flatMap((stage) => (stage.type === "Sequence" ? flatten(stage) : [stage]));
}
