// Finds added tokens ("<|im_start|>") in the raw text, before any other stage: leftmost first, then longest. The splitter
// cuts a text into plain sections and token ids. Tokens with lstrip or rstrip swallow the whitespace beside them.
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { TextFiles } from "../tokenizer-files.ts";

export interface AddedToken {
  id: number;
  content: string;
  special: boolean;
  lstrip: boolean;
  rstrip: boolean;
  /** Does not match inside a word. */
  singleWord: boolean;
  /** Looked for after normalisation instead of in the raw text. */
  normalized: boolean;
}

/** A plain section, or the id of an added token. */
export type Section = string | number;

interface TrieNode {
  token: AddedToken | null;
  next: Map<number, TrieNode>;
}

export class AddedTokenSplitter {
  readonly #root: TrieNode = { token: null, next: new Map() };

  /** `spelling` is how each token looks in the text that will be split. */
  constructor(tokens: readonly { spelling: string; token: AddedToken }[]) {
    for (const { spelling, token } of tokens) {
      if (spelling === "") continue;
      let node = this.#root;
      for (let i = 0; i < spelling.length; i++) {
        const code = spelling.charCodeAt(i);
        let child = node.next.get(code);
        if (!child) {
          child = { token: null, next: new Map() };
          node.next.set(code, child);
        }
        node = child;
      }
      node.token = token;
    }
  }

  /** Yields one part at a time, so that a caller can stop early. */
  *split(text: string): Generator<Section, void> {
    if (this.#root.next.size === 0) {
      if (text !== "") yield text;
      return;
    }
    let plainFrom = 0;
    for (let at = 0; at < text.length; ) {
      const match = this.#longestAt(text, at);
      if (!match) {
        at++;
        continue;
      }
      if (match.token.singleWord && isInWord(text, at, match.end)) {
        at = match.end;
        continue;
      }
      let plain = text.slice(plainFrom, at);
      if (match.token.lstrip) plain = plain.slice(0, startOfWhitespace(plain));
      if (plain !== "") yield plain;
      yield match.token.id;
      at = match.end;
      if (match.token.rstrip) at = endOfWhitespace(text, at);
      plainFrom = at;
    }
    if (plainFrom < text.length) yield text.slice(plainFrom);
  }

  #longestAt(text: string, from: number): { token: AddedToken; end: number } | null {
    let node: TrieNode | undefined = this.#root;
    let found: { token: AddedToken; end: number } | null = null;
    for (let at = from; at < text.length; at++) {
      node = node.next.get(text.charCodeAt(at));
      if (!node) break;
      if (node.token) found = { token: node.token, end: at + 1 };
    }
    return found;
  }
}

/** What Rust's \w matches. */
const WORD_BEFORE = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;
const WORD_AFTER = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;

/** Looks at one character (at most two UTF-16 units) on each side. */
function isInWord(text: string, from: number, to: number): boolean {
  return WORD_BEFORE.test(text.slice(Math.max(0, from - 2), from)) || WORD_AFTER.test(text.slice(to, to + 2));
}

function startOfWhitespace(text: string): number {
  let at = text.length;
  while (at > 0 && /\p{White_Space}/u.test(text[at - 1]!)) at--;
  return at;
}

function endOfWhitespace(text: string, from: number): number {
  const whitespace = /\p{White_Space}*/uy;
  whitespace.lastIndex = from;
  whitespace.test(text);
  return whitespace.lastIndex;
}

// Finds the tokens a checkpoint adds and which of them are special. It reads tokenizer.json, tokenizer_config.json and
// special_tokens_map.json as transformers does. The configuration names roles (bos, eos, ...) and may add tokens that
// tokenizer.json lacks. A token with a role is always special.

const ROLES = ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"] as const;

export interface SpecialTokens {
  added: AddedToken[];
  /** Role -> text, as templates see them: bos_token, eos_token, ... */
  roles: Readonly<Record<string, string>>;
}

export function readSpecialTokens(files: TextFiles): SpecialTokens {
  const named: Record<string, string> = {};
  for (const role of ROLES) {
    const text = tokenText(files.tokenizerConfig[role]) ?? tokenText(files.specialTokensMap[role]);
    if (text !== null) named[role] = text;
  }
  const special = new Set([
    ...Object.values(named),
    ...additional(files.tokenizerConfig),
    ...additional(files.specialTokensMap),
  ]);
  const added = new Map<number, AddedToken>();
  for (const entry of asArray(files.tokenizer.added_tokens)) addToken(added, entry.id, entry, special);
  const declared = files.tokenizerConfig.added_tokens_decoder;
  if (isJsonObject(declared)) {
    for (const [id, entry] of Object.entries(declared)) {
      if (isJsonObject(entry) && !added.has(Number(id))) addToken(added, Number(id), entry, special);
    }
  }
  return { added: [...added.values()], roles: named };
}

function addToken(into: Map<number, AddedToken>, id: unknown, entry: JsonObject, special: ReadonlySet<string>): void {
  if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || typeof entry.content !== "string") return;
  const isSpecial = entry.special === true || special.has(entry.content);
  into.set(id, {
    id,
    content: entry.content,
    special: isSpecial,
    lstrip: entry.lstrip === true,
    rstrip: entry.rstrip === true,
    singleWord: entry.single_word === true,
    normalized: typeof entry.normalized === "boolean" ? entry.normalized : !isSpecial,
  });
}

function additional(config: JsonObject): string[] {
  const listed = config.additional_special_tokens;
  return Array.isArray(listed) ? listed.map(tokenText).filter((text) => text !== null) : [];
}

function tokenText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return isJsonObject(value) && typeof value.content === "string" ? value.content : null;
}

function asArray(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
