// Converts parsed messages and choices to items of a history. A choice keeps its token ids and log-probabilities, in
// any form that servers use. Missing ones stay null.

import type { History, HistoryItem, HistoryMessage, SampledChoice } from "../../training/data/trajectory.ts";
import { chatTools } from "../request/messages.ts";
import type { Loc, Violations } from "../request/violations.ts";
import { historyMessage } from "./history-message.ts";
import type { LogprobEntry, WireChoice, WireHistoryItem, WireHistoryMessage } from "./trajectory.schema.ts";

type Tools = Parameters<typeof chatTools>[0];

/** `loc` is the path of the items. */
export function historyFrom(items: readonly WireHistoryItem[], tools: Tools, loc: Loc, issues: Violations): History {
  return { items: items.map((item, i) => itemFrom(item, [...loc, i], issues)), tools: chatTools(tools) };
}

function itemFrom(item: WireHistoryItem, loc: Loc, issues: Violations): HistoryItem {
  if (!("role" in item)) return { choice: choiceFrom(item, loc, issues) };
  const message = messageFrom(item);
  // an assistant message with log-probabilities counts as a choice
  const isChoice = item.role === "assistant" && (item.logprobs ?? null) !== null;
  return isChoice ? { choice: { message, ...sampled(item, loc, issues) } } : { message };
}

export function choiceFrom(choice: WireChoice, loc: Loc, issues: Violations): SampledChoice {
  return { message: messageFrom(choice.message), ...sampled(choice, loc, issues) };
}

export function messageFrom(message: WireHistoryMessage | WireChoice["message"]): HistoryMessage {
  return historyMessage({ ...message, role: message.role ?? "assistant" });
}

function sampled(
  { logprobs, token_ids, prompt_token_ids }: WireChoice | WireHistoryMessage,
  loc: Loc,
  issues: Violations,
): Omit<SampledChoice, "message"> {
  const { content = null, refusal = null } = logprobs ?? {};
  // a refusal has its tokens under refusal and no content
  const isRefusal = refusal !== null && (content ?? []).length === 0;
  const entries = isRefusal ? refusal : content;
  const tokenIds = token_ids ?? idsOf(entries ?? []);
  const result = {
    promptTokenIds: prompt_token_ids ?? null,
    tokenIds,
    logprobs: entries?.map(({ logprob }) => logprob) ?? null,
    tokens: null,
  };
  if (entries === null || tokenIds !== null) return result;
  const nameless = entries.findIndex(({ token }) => (token ?? null) === null);
  if (nameless >= 0) {
    const place = [...loc, "logprobs", isRefusal ? "refusal" : "content", nameless, "token"];
    issues.add(place, "missing", "Field required");
  }
  const bytes = entries.map((entry) => entry.bytes ?? null);
  return { ...result, tokens: entries.map(({ token }) => token ?? ""), bytes };
}

/** The ids that the entries name; null unless every entry names one. */
function idsOf(entries: readonly LogprobEntry[]): number[] | null {
  const ids = entries.flatMap(({ token_id }) => token_id ?? []);
  return ids.length > 0 && ids.length === entries.length ? ids : null;
}
