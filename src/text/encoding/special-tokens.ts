// Finds the tokens a checkpoint adds and which of them are special. It reads tokenizer.json, tokenizer_config.json and
// special_tokens_map.json as transformers does. The configuration names roles (bos, eos, ...) and may add tokens that
// tokenizer.json lacks. A token with a role is always special.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { TextFiles } from "../tokenizer-files.ts";
import type { AddedToken } from "./added-tokens.ts";

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
