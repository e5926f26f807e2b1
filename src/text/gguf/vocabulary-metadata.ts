// The vocabulary in the metadata of a GGUF file: pieces, their kinds, and the tokens with roles.

import { TextFilesError } from "../tokenizer-files.ts";

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
export const TOKEN_KIND = { unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

export interface GgufVocabulary {
  /** By id. */
  pieces: readonly string[];
  /** By id: see TOKEN_KIND. Others are plain. */
  kinds: readonly number[];
}

export function readVocabulary(metadata: TextMetadata): GgufVocabulary {
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
export function readRoles(metadata: TextMetadata, { pieces }: GgufVocabulary): Record<string, string> {
  const roles: Record<string, string> = {};
  for (const [name, role] of Object.entries(ROLES)) {
    const key = `tokenizer.ggml.${name}_token_id`;
    const piece = metadata.has(key) ? pieces[metadata.number(key)] : undefined;
    if (piece !== undefined) roles[role] = piece;
  }
  return roles;
}
