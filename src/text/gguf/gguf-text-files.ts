// The text files of a checkpoint folder that the metadata of a GGUF file stand for: a tokenizer.json with the same ids as
// llama.cpp's for every text, the roles of tokens, and the chat templates. From there on they are read as from a folder.

import type { JsonObject } from "../../json/json.ts";
import { type TextFiles, TextFilesError } from "../tokenizer-files.ts";
import { preTokenizerNamed } from "./pre-tokenizers.ts";
import { scoreMerges } from "./score-merges.ts";
import {
  type GgufVocabulary,
  readRoles,
  readVocabulary,
  type TextMetadata,
  TOKEN_KIND,
} from "./vocabulary-metadata.ts";

const SPACE_MARK = "\u2581";

/** Throws TextFilesError. */
export function ggufTextFiles(metadata: TextMetadata): TextFiles {
  const vocabulary = readVocabulary(metadata);
  const roles = readRoles(metadata, vocabulary);
  const { addsBos, ...model } = readModel(metadata, vocabulary, roles);
  const frame = {
    before: metadata.flag("tokenizer.ggml.add_bos_token", addsBos) ? roles.bos_token : undefined,
    after: metadata.flag("tokenizer.ggml.add_eos_token", false) ? roles.eos_token : undefined,
  };
  return {
    tokenizer: { ...model, added_tokens: addedTokens(metadata, vocabulary), post_processor: postProcessor(frame) },
    tokenizerConfig: roles,
    specialTokensMap: {},
    modelConfig: {},
    generationConfig: {},
    chatTemplates: readTemplates(metadata),
  };
}

interface ModelParts {
  model: JsonObject;
  normalizer: JsonObject | null;
  pre_tokenizer: JsonObject | null;
  decoder: JsonObject;
  addsBos: boolean;
}

function readModel(metadata: TextMetadata, vocabulary: GgufVocabulary, roles: Record<string, string>): ModelParts {
  const kind = metadata.text("tokenizer.ggml.model");
  if (kind === "gpt2") return byteLevelModel(metadata, vocabulary);
  if (kind === "llama") return sentencePieceModel(metadata, vocabulary, roles);
  throw new TextFilesError(
    `${metadata.path}: tokenizers of the kind ${JSON.stringify(kind)} are not supported (supported: gpt2, llama).`,
  );
}

function byteLevelModel(metadata: TextMetadata, { pieces, kinds }: GgufVocabulary): ModelParts {
  const pre = preTokenizerNamed(metadata.path, metadata.text("tokenizer.ggml.pre", ""));
  const isAdded = (id: number) => kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.userDefined;
  const vocab = Object.fromEntries(pieces.map((piece, id) => [piece, id] as const).filter(([, id]) => !isAdded(id)));
  return {
    model: {
      type: "BPE",
      vocab,
      merges: metadata.texts("tokenizer.ggml.merges").map(splitMerge),
      ignore_merges: pre.ignoreMerges,
    },
    normalizer: null,
    pre_tokenizer: pre.rules,
    decoder: { type: "ByteLevel" },
    addsBos: pre.addsBos,
  };
}

/** The first part may begin with a space. */
function splitMerge(merge: string): [string, string] {
  const at = merge.indexOf(" ", 1);
  return at < 0 ? [merge, ""] : [merge.slice(0, at), merge.slice(at + 1)];
}

function sentencePieceModel(
  metadata: TextMetadata,
  { pieces, kinds }: GgufVocabulary,
  roles: Record<string, string>,
): ModelParts {
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores.length < pieces.length) {
    throw new TextFilesError(`${metadata.path}: it has ${pieces.length} tokens, but only ${scores.length} scores.`);
  }
  const { merges, ranks } = scoreMerges(pieces, scores);
  const prefixed = metadata.flag("tokenizer.ggml.add_space_prefix", true);
  const unknown = roles.unk_token ?? pieces[kinds.indexOf(TOKEN_KIND.unknown)] ?? null;
  const spaces = { type: "Replace", pattern: { String: " " }, content: SPACE_MARK };
  const prefix = { type: "Prepend", prepend: SPACE_MARK };
  const strip = { type: "Strip", content: " ", start: 1, stop: 0 };
  return {
    model: {
      type: "BPE",
      vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
      merges,
      merge_ranks: ranks,
      unk_token: unknown,
      fuse_unk: true,
      byte_fallback: kinds.includes(TOKEN_KIND.byte),
    },
    normalizer: { type: "Sequence", normalizers: prefixed ? [prefix, spaces] : [spaces] },
    pre_tokenizer: null,
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: SPACE_MARK }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(prefixed ? [strip] : []),
      ],
    },
    addsBos: true,
  };
}

function addedTokens(metadata: TextMetadata, { pieces, kinds }: GgufVocabulary): JsonObject[] {
  const swallows = swallowsSpace(metadata);
  const tokens: JsonObject[] = [];
  for (const [id, content] of pieces.entries()) {
    const special = kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.unknown;
    if (!special && kinds[id] !== TOKEN_KIND.userDefined) continue;
    const rstrip = swallows(content);
    tokens.push({ id, content, special, normalized: false, lstrip: false, rstrip, single_word: false });
  }
  return tokens;
}

/** Phi-3's chat tokens swallow the white space after them. A file does not say so, only that it is Phi-3. */
function swallowsSpace(metadata: TextMetadata): (piece: string) => boolean {
  const isPhi3 = metadata.text("general.architecture") === "phi3" && metadata.text("tokenizer.ggml.model") === "llama";
  return (piece) => isPhi3 && !["<unk>", "<s>", "<|endoftext|>"].includes(piece);
}

function postProcessor({
  before,
  after,
}: {
  before: string | undefined;
  after: string | undefined;
}): JsonObject | null {
  const tokens = [before, after].filter((token) => token !== undefined);
  if (tokens.length === 0) return null;
  const special = (token: string | undefined) =>
    token === undefined ? [] : [{ SpecialToken: { id: token, type_id: 0 } }];
  return {
    type: "TemplateProcessing",
    single: [...special(before), { Sequence: { id: "A", type_id: 0 } }, ...special(after)],
    pair: [],
    special_tokens: Object.fromEntries(tokens.map((token) => [token, { id: token, ids: [], tokens: [token] }])),
  };
}

function readTemplates(metadata: TextMetadata): Map<string, string> {
  const prefix = "tokenizer.chat_template";
  const templates = new Map<string, string>();
  for (const key of metadata.keys()) {
    if (key === prefix) templates.set("default", metadata.text(key));
    else if (key.startsWith(`${prefix}.`)) templates.set(key.slice(prefix.length + 1), metadata.text(key));
  }
  return templates;
}
