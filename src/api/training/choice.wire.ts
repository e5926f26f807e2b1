// One sampled choice from the wire: its message, the token ids and log-probabilities it carries in any of the forms
// servers use. What is not there stays null; what is there twice is taken in its most exact form later on.

import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { HistoryItem, HistoryMessage, SampledChoice } from "../../training/data/trajectory.ts";
import { Fields } from "./fields.ts";
import { historyMessage } from "./history-message.ts";
import type { Issues, Loc } from "./issues.ts";

export function choiceFrom(object: JsonObject, loc: Loc, issues: Issues): SampledChoice {
  const fields = new Fields(object, loc, issues);
  const message = { role: "assistant", ...fields.object("message") };
  return { message: messageFrom(message, fields.at("message"), issues), ...sampled(fields, issues) };
}

/** An assistant message that carries log-probabilities of its own is as good as a choice. */
export function choiceOfMessage(
  object: JsonObject,
  message: HistoryMessage,
  loc: Loc,
  issues: Issues,
): HistoryItem | null {
  if (object.role !== "assistant" || object.logprobs === undefined || object.logprobs === null) return null;
  return { choice: { message, ...sampled(new Fields(object, loc, issues), issues) } };
}

export function messageFrom(object: JsonObject, loc: Loc, issues: Issues): HistoryMessage {
  const fields = new Fields(object, loc, issues);
  const role = fields.text("role") ?? "assistant";
  const content = fields.raw("content") ?? "";
  if (typeof content !== "string" && !Array.isArray(content)) {
    fields.problem("content", "string_type", "Input should be a valid string");
  }
  return historyMessage({ ...object, role, content });
}

function sampled(fields: Fields, issues: Issues): Omit<SampledChoice, "message"> {
  const list = logprobList(fields, issues);
  const tokenIds = fields.integers("token_ids") ?? idsOf(list?.values ?? []);
  const read =
    tokenIds === null ? { isPlain: isPlainText, from: textFrom } : { isPlain: isPlainEntry, from: entryFrom };
  const entries: LogprobEntry[] = [];
  for (const [i, value] of (list?.values ?? []).entries()) {
    const entry = read.isPlain(value) ? value : read.from(value, [...list!.loc, i], issues);
    if (entry) entries.push(entry);
  }
  const texts = {
    tokens: entries.map(({ token }) => token ?? ""),
    bytes: entries.map(({ bytes }) => bytes ?? null),
  };
  return {
    promptTokenIds: fields.integers("prompt_token_ids"),
    tokenIds,
    logprobs: list && entries.map(({ logprob }) => logprob),
    ...(list && tokenIds === null ? texts : { tokens: null }),
  };
}

/** `token_id` of the entries; null unless all have one. */
function idsOf(values: readonly unknown[]): number[] | null {
  const ids = values.map((value) => (isJsonObject(value) ? value.token_id : null));
  return ids.length > 0 && ids.every((id) => Number.isSafeInteger(id)) ? (ids as number[]) : null;
}

/** `logprobs.content`, or `refusal` when the model refused (then content is null or empty); null when there is neither. */
function logprobList(fields: Fields, issues: Issues): { values: readonly unknown[]; loc: Loc } | null {
  const logprobs = fields.object("logprobs");
  if (!logprobs) return null;
  const lists = new Fields(logprobs, fields.at("logprobs"), issues);
  const [content, refusal] = [lists.array("content"), lists.array("refusal")];
  if (refusal && (content ?? []).length === 0) return { values: refusal, loc: lists.at("refusal") };
  return content && { values: content, loc: lists.at("content") };
}

interface LogprobEntry {
  logprob: number;
  /** What names the token where no id does. */
  token?: string;
  bytes?: number[] | null;
}

/** As servers write them. There is one per token: they are told from the others without a path for each. */
function isPlainEntry(value: unknown): value is LogprobEntry {
  return isJsonObject(value) && Number.isFinite(value.logprob);
}

/** The same where the entry must name its token. */
function isPlainText(value: unknown): value is LogprobEntry {
  if (!isPlainEntry(value) || typeof value.token !== "string") return false;
  const { bytes } = value;
  return bytes === undefined || bytes === null || (Array.isArray(bytes) && bytes.every(Number.isSafeInteger));
}

function entryFrom(value: unknown, loc: Loc, issues: Issues): LogprobEntry | null {
  if (!isJsonObject(value)) {
    issues.add(loc, "dict_type", "Input should be a valid dictionary", value);
    return null;
  }
  const fields = new Fields(value, loc, issues);
  const logprob = fields.number("logprob") ?? 0;
  if (fields.raw("logprob") === undefined) fields.missing("logprob");
  return { logprob };
}

function textFrom(value: unknown, loc: Loc, issues: Issues): LogprobEntry | null {
  const entry = entryFrom(value, loc, issues);
  if (!entry) return null;
  const fields = new Fields(value as JsonObject, loc, issues);
  if (fields.raw("token") === undefined) fields.missing("token");
  return { ...entry, token: fields.text("token") ?? "", bytes: fields.integers("bytes") };
}
