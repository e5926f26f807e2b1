// One sampled choice from the wire: its message, the token ids and log-probabilities it carries in any of the forms
// servers use. What is not there stays null; what is there twice is taken in its most exact form later on.

import type { ChatMessage, HistoryItem, SampledChoice } from "../../training/trajectory.ts";
import { Fields, type JsonObject } from "./fields.ts";
import type { Issues, Loc } from "./issues.ts";

export function choiceFrom(object: JsonObject, loc: Loc, issues: Issues): SampledChoice {
  const fields = new Fields(object, loc, issues);
  const message = { role: "assistant", ...fields.object("message") };
  return { message: messageFrom(message, fields.at("message"), issues), ...sampled(fields, issues) };
}

/** An assistant message that carries log-probabilities of its own is as good as a choice. */
export function choiceOfMessage(
  object: JsonObject,
  message: ChatMessage,
  loc: Loc,
  issues: Issues,
): HistoryItem | null {
  if (object.role !== "assistant" || object.logprobs === undefined || object.logprobs === null) return null;
  const { logprobs, token_ids, prompt_token_ids, ...plain } = message;
  return { choice: { message: plain as ChatMessage, ...sampled(new Fields(object, loc, issues), issues) } };
}

/** Passed to the template as it came; null content is no content. */
export function messageFrom(object: JsonObject, loc: Loc, issues: Issues): ChatMessage {
  const fields = new Fields(object, loc, issues);
  const role = fields.text("role") ?? "assistant";
  const content = fields.raw("content") ?? "";
  if (typeof content !== "string" && !Array.isArray(content)) {
    fields.problem("content", "string_type", "Input should be a valid string");
  }
  const given = Object.entries(object).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(given), role, content };
}

function sampled(fields: Fields, issues: Issues): Omit<SampledChoice, "message"> {
  const entries = logprobEntries(fields, issues);
  const tokenIds = fields.integers("token_ids") ?? idsOf(entries);
  const texts: EntryTexts = { tokens: [], bytes: [] };
  const logprobs: number[] = [];
  for (const { object, loc } of entries ?? []) {
    const entry = new Fields(object, loc, issues);
    if (tokenIds === null) readText(entry, texts);
    const logprob = entry.number("logprob");
    if (entry.raw("logprob") === undefined) entry.missing("logprob");
    logprobs.push(logprob ?? 0);
  }
  return {
    promptTokenIds: fields.integers("prompt_token_ids"),
    tokenIds,
    logprobs: entries && logprobs,
    ...(entries && tokenIds === null ? texts : { tokens: null }),
  };
}

/** What names a token where no id does. */
interface EntryTexts {
  tokens: string[];
  bytes: (number[] | null)[];
}

function readText(entry: Fields, { tokens, bytes }: EntryTexts): void {
  if (entry.raw("token") === undefined) entry.missing("token");
  tokens.push(entry.text("token") ?? "");
  bytes.push(entry.integers("bytes"));
}

/** `token_id` of the entries; null unless all have one. */
function idsOf(entries: readonly { object: JsonObject }[] | null): number[] | null {
  const ids = (entries ?? []).map(({ object }) => object.token_id);
  return ids.length > 0 && ids.every((id) => Number.isSafeInteger(id)) ? (ids as number[]) : null;
}

/** The entries of `logprobs.content`, or of `refusal` when the model refused; null when there are none to speak of. */
function logprobEntries(fields: Fields, issues: Issues): { object: JsonObject; loc: Loc }[] | null {
  const logprobs = fields.object("logprobs");
  if (!logprobs) return null;
  const lists = new Fields(logprobs, fields.at("logprobs"), issues);
  const key = lists.array("content") ? "content" : "refusal";
  return lists.array(key) ? lists.objects(key) : null;
}
