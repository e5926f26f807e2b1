// Ids, pieces and bytes of a vocabulary with its added tokens. All bytes are in one flat array: those of id i are
// bytes[offsets[i], offsets[i + 1]). An id without a token has no bytes.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { TextFilesError } from "../tokenizer-files.ts";
import { decodeUtf8, encodeUtf8 } from "../utf8.ts";
import type { AddedToken } from "./added-tokens.ts";

// The printable alphabet in which byte-level BPE vocabularies spell bytes: printable Latin-1 stands for itself, the
// other 68 bytes are U+0100 onwards in byte order ("Ġ" is the space).

/** byte -> its character. */
export const byteToChar: readonly string[] = buildAlphabet();

const CHAR_CODE_TO_BYTE = new Map(byteToChar.map((char, byte) => [char.charCodeAt(0), byte]));

/** The bytes a byte-level piece spells; a piece with a character outside the alphabet stands for its own UTF-8. */
function bytesOfPiece(piece: string): Uint8Array {
  const bytes = new Uint8Array(piece.length);
  for (let i = 0; i < piece.length; i++) {
    const byte = CHAR_CODE_TO_BYTE.get(piece.charCodeAt(i));
    if (byte === undefined) return encodeUtf8(piece);
    bytes[i] = byte;
  }
  return bytes;
}

/** The name of the token that stands for one byte in SentencePiece vocabularies. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

function buildAlphabet(): string[] {
  const alphabet: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet.push(String.fromCharCode(printable ? byte : next++));
  }
  return alphabet;
}

// Reads from the decoder section of tokenizer.json how pieces spell bytes. Two kinds are supported: byte-level alphabets
// and SentencePiece-style space marks. Other kinds (WordPiece, CTC) are refused at load time, because their text cannot be
// rebuilt from single tokens.

const DEFAULT_SPACE_MARK = "\u2581";

export function readPieceSpelling(tokenizer: JsonObject): { spelling: PieceSpelling; stripsLeadingSpace: boolean } {
  const stages = stagesOf(tokenizer.decoder, "decoders");
  const has = (type: string): boolean => stages.some((stage) => stage.type === type);
  if (has("ByteLevel")) {
    return { spelling: { kind: "byte_level", spaceMark: "", byteFallback: false }, stripsLeadingSpace: false };
  }
  const metaspace = stages.find((stage) => stage.type === "Metaspace");
  const replace = stages.find((stage) => stage.type === "Replace" && stage.content === " ");
  if (!metaspace && !replace && !has("ByteFallback")) {
    const found = stages.map((stage) => stage.type).join(", ") || "none";
    throw new TextFilesError(
      `tokenizer.json has a decoder of an unsupported kind (${found}): byte-level and SentencePiece ones can be served.`,
    );
  }
  return {
    spelling: {
      kind: "sentencepiece",
      spaceMark: textOf(metaspace?.replacement) ?? patternOf(replace) ?? DEFAULT_SPACE_MARK,
      byteFallback: has("ByteFallback"),
    },
    stripsLeadingSpace: stages.some(stripsSpace),
  };
}

function stripsSpace(stage: JsonObject): boolean {
  if (stage.type === "Strip") return stage.content === " " && Number(stage.start) > 0;
  return stage.type === "Metaspace" && stage.prepend_scheme !== "never" && stage.add_prefix_space !== false;
}

function patternOf(stage: JsonObject | undefined): string | null {
  return isJsonObject(stage?.pattern) ? textOf(stage.pattern.String) : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function stagesOf(section: unknown, listName: string): JsonObject[] {
  if (!isJsonObject(section)) return [];
  if (section.type !== "Sequence") return [section];
  const list = section[listName];
  return Array.isArray(list) ? list.flatMap((stage) => stagesOf(stage, listName)) : [];
}

interface PieceSpelling {
  kind: "byte_level" | "sentencepiece";
  /** What stands for the space in SentencePiece pieces. */
  spaceMark: string;
  /** <0xNN> pieces stand for one byte. */
  byteFallback: boolean;
}

const BYTE_PIECE = /^<0x([0-9A-Fa-f]{2})>$/;

export class Vocabulary {
  /** Largest id + 1. */
  readonly size: number;
  /** Bytes of the longest token, at least 1. */
  readonly longestToken: number;
  readonly #pieces: (string | undefined)[];
  readonly #ids = new Map<string, number>();
  readonly #special: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly #offsets: Uint32Array;
  readonly #spelling: PieceSpelling;

  constructor(modelVocab: ReadonlyMap<string, number>, added: readonly AddedToken[], spelling: PieceSpelling) {
    this.#spelling = spelling;
    this.#pieces = [];
    for (const [piece, id] of modelVocab) this.#set(piece, id);
    for (const token of added) this.#set(token.content, token.id);
    this.size = this.#pieces.length;
    this.#special = new Uint8Array(this.size);
    const addedIds = new Set(added.map((token) => token.id));
    for (const token of added) if (token.special) this.#special[token.id] = 1;

    this.#offsets = new Uint32Array(this.size + 1);
    const chunks: Uint8Array[] = [];
    let total = 0;
    let longest = 1;
    for (let id = 0; id < this.size; id++) {
      const piece = this.#pieces[id];
      const bytes = piece === undefined ? new Uint8Array(0) : pieceBytes(piece, addedIds.has(id), spelling);
      chunks.push(bytes);
      total += bytes.length;
      longest = Math.max(longest, bytes.length);
      this.#offsets[id + 1] = total;
    }
    this.#bytes = new Uint8Array(total);
    for (let id = 0; id < this.size; id++) this.#bytes.set(chunks[id]!, this.#offsets[id]);
    this.longestToken = longest;
  }

  piece(id: number): string | null {
    return this.#pieces[id] ?? null;
  }

  idOf(piece: string): number | null {
    return this.#ids.get(piece) ?? null;
  }

  /** If several tokens match, prefers one spelled as text over one spelled as a byte. */
  idOfBytes(bytes: ArrayLike<number>): number | null {
    if (bytes.length === 0 || bytes.length > this.longestToken) return null;
    for (const piece of spellings(Uint8Array.from(bytes), this.#spelling)) {
      const id = this.#ids.get(piece);
      if (id !== undefined && sameBytes(this.bytes(id), bytes)) return id;
    }
    return null;
  }

  /** Whether the token is <0xNN> and stands for that byte. */
  isByte(id: number): boolean {
    return this.#spelling.byteFallback && BYTE_PIECE.test(this.#pieces[id] ?? "");
  }

  isSpecial(id: number): boolean {
    return this.#special[id] === 1;
  }

  /** A view. Do not write to it. */
  bytes(id: number): Uint8Array {
    if (!(id >= 0 && id < this.size)) return this.#bytes.subarray(0, 0);
    return this.#bytes.subarray(this.#offsets[id], this.#offsets[id + 1]);
  }

  #set(piece: string, id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= 2 ** 24) {
      throw new TextFilesError(`tokenizer.json gives the token ${JSON.stringify(piece)} the impossible id ${id}.`);
    }
    this.#pieces[id] = piece;
    this.#ids.set(piece, id);
  }
}

function pieceBytes(piece: string, isAdded: boolean, spelling: PieceSpelling): Uint8Array {
  if (spelling.kind === "byte_level") return isAdded ? encodeUtf8(piece) : bytesOfPiece(piece);
  const byte = spelling.byteFallback ? BYTE_PIECE.exec(piece) : null;
  if (byte) return Uint8Array.of(Number.parseInt(byte[1]!, 16));
  return encodeUtf8(piece.replaceAll(spelling.spaceMark, " "));
}

/** Pieces that could stand for these bytes. */
function spellings(bytes: Uint8Array, { kind, spaceMark }: PieceSpelling): string[] {
  const text = decodeUtf8(bytes);
  if (kind === "byte_level") return [text, Array.from(bytes, (byte) => byteToChar[byte]).join("")];
  const marked = text.replaceAll(" ", spaceMark);
  if (bytes.length > 1) return [marked, text];
  return [marked, text, byteToken(bytes[0]!)];
}

function sameBytes(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
