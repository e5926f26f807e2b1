// The text files of a checkpoint folder that the metadata of a GGUF file stand for: a tokenizer.json with the same ids as
// llama.cpp's for every text, the roles of tokens, and the chat templates. From there on they are read as from a folder.

import type { JsonObject } from "../../json/json.ts";
import { type TextFiles, TextFilesError } from "../tokenizer-files.ts";
import { preTokenizerNamed } from "./pre-tokenizers.ts";

// The vocabulary in the metadata of a GGUF file: pieces, their kinds, and the tokens with roles.

/** What the tokenizer needs of a file's metadata. */
export interface TextMetadata {
  readonly path: string;
  has(key: string): boolean;
  keys(): string[];
  text(key: string, fallback?: string): string;
  flag(key: string, fallback: boolean): boolean;
  number(key: string, fallback?: number): number;
  texts(key: string): string[];
  numbers(key: string): number[];
}

/** Kinds of tokens, as numbers in the file. */
const TOKEN_KIND = { unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

interface GgufVocabulary {
  /** By id. */
  pieces: readonly string[];
  /** By id: see TOKEN_KIND. Others are plain. */
  kinds: readonly number[];
}

function readVocabulary(metadata: TextMetadata): GgufVocabulary {
  const pieces = metadata.texts("tokenizer.ggml.tokens").map((piece, id) => (piece === "" ? `[EMPTY_${id}]` : piece));
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  if (ids.size !== pieces.length) {
    const twice = pieces.find((piece, id) => ids.get(piece) !== id)!;
    throw new TextFilesError(`${metadata.path}: its vocabulary has the token ${JSON.stringify(twice)} twice.`);
  }
  const key = "tokenizer.ggml.token_type";
  const kinds = metadata.has(key) ? metadata.numbers(key) : pieces.map(() => 1);
  if (kinds.length < pieces.length) {
    throw new TextFilesError(`${metadata.path}: it has ${pieces.length} tokens, but only ${kinds.length} kinds.`);
  }
  return { pieces, kinds };
}

const ROLES = {
  bos: "bos_token",
  eos: "eos_token",
  unknown: "unk_token",
  padding: "pad_token",
  seperator: "sep_token",
};

/** The texts of the tokens with roles, as tokenizer_config.json has them. */
function readRoles(metadata: TextMetadata, { pieces }: GgufVocabulary): Record<string, string> {
  const roles: Record<string, string> = {};
  for (const [name, role] of Object.entries(ROLES)) {
    const key = `tokenizer.ggml.${name}_token_id`;
    const piece = metadata.has(key) ? pieces[metadata.number(key)] : undefined;
    if (piece !== undefined) roles[role] = piece;
  }
  return roles;
}

// The merges of a SentencePiece vocabulary. A GGUF file has a score for every piece instead of a list of merges: of all
// neighbours that make a piece together, the pair with the best piece is merged first, the leftmost on ties.

export interface RankedMerges {
  merges: [string, string][];
  /** One for each merge, ascending. Merges into pieces of the same score share a rank. */
  ranks: number[];
}

function scoreMerges(pieces: readonly string[], scores: readonly number[]): RankedMerges {
  const known = new Set(pieces);
  const order = pieces.map((_, id) => id).sort((a, b) => scores[b]! - scores[a]! || a - b);
  const merges: [string, string][] = [];
  const ranks: number[] = [];
  let rank = -1;
  let scoreOfRank = Number.NaN;
  for (const id of order) {
    if (scores[id] !== scoreOfRank) {
      rank++;
      scoreOfRank = scores[id]!;
    }
    const piece = pieces[id]!;
    for (const at of boundaries(piece)) {
      const [left, right] = [piece.slice(0, at), piece.slice(at)];
      if (!known.has(left) || !known.has(right)) continue;
      merges.push([left, right]);
      ranks.push(rank);
    }
  }
  return { merges, ranks };
}

/** The places between the characters of a piece. */
function boundaries(piece: string): number[] {
  const places: number[] = [];
  for (let at = 1; at < piece.length; at++) {
    const isInside = /[\udc00-\udfff]/.test(piece[at]!) && /[\ud800-\udbff]/.test(piece[at - 1]!);
    if (!isInside) places.push(at);
  }
  return places;
}

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
