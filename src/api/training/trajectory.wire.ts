// Converts training data to the trainer's compact form. Items of a large body arrive one by one.
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { SftExample } from "../../training/data/prepare-sft.ts";
import type {
  GroupPart,
  History,
  HistoryItem,
  HistoryMessage,
  SampledChoice,
  Trajectory,
} from "../../training/data/trajectory.ts";
import { chatMessage, chatTools, Message } from "../generation/messages.ts";
import { type Loc, Violations } from "../schema/scalars.ts";
import type { Streamed } from "./json-stream.ts";
import {
  ExampleBody,
  type LogprobEntry,
  TrajectoryBody,
  TrajectoryGroupBody,
  type WireChoice,
  type WireExchange,
  type WireHistoryItem,
  type WireHistoryMessage,
  type WireTrajectory,
} from "./trajectory.schema.ts";
import { readTraining } from "./validation.ts";

// Reads messages of training data as chat does. A message that chat would refuse is kept with the reason: sampled
// tokens can be trained without it, and one bad message must not fail the whole job.
export function historyMessage(message: JsonObject & { role: string }): HistoryMessage {
  const violations = new Violations(1);
  const read = readTraining(Message, message, violations, []);
  const refused = (field: string, reason: string) => ({ role: message.role, texts: [], refusal: { field, reason } });
  if (read === undefined) {
    const { loc, msg } = violations.list[0]!;
    return refused(`.${loc.join(".")}`, msg);
  }
  try {
    return chatMessage(read, "");
  } catch (error) {
    if (error instanceof PromptError) return refused(error.param ?? "", error.message);
    throw error;
  }
}

// Reads a trajectory given as captured API calls: requests with their responses. Trains every choice of every response.

const EXCHANGE_KINDS = ["chat_completions", "completions", "responses", "messages"] as const;

/**
 * null when nothing was captured. If every call has its prompt's ids, the calls form one history, joined by those ids.
 * Otherwise each choice is a separate history that follows the messages of its request.
 */
function exchangeHistories({ exchanges }: WireTrajectory, loc: Loc, issues: Violations): History[] | null {
  const captured = EXCHANGE_KINDS.filter((kind) => (exchanges?.[kind] ?? []).length > 0);
  if (captured.length === 0) return null;
  for (const kind of captured.filter((name) => name !== "chat_completions")) {
    const rule = "Value error, only chat_completions exchanges can be trained here";
    issues.add([...loc, "exchanges", kind], "value_error", rule);
  }
  const at = [...loc, "exchanges", "chat_completions"];
  const histories = (exchanges?.chat_completions ?? []).flatMap((exchange, i) =>
    historiesOf(exchange, `exchanges.chat_completions[${i}]`, [...at, i], issues),
  );
  const choices = histories.flatMap(({ items }) => items.filter((item) => "choice" in item));
  return choices.every(({ choice }) => choice.promptTokenIds !== null) ? [{ items: choices, tools: null }] : histories;
}

/** `at` is the path of the exchange in its trajectory. */
function historiesOf({ request, response }: WireExchange, at: string, loc: Loc, issues: Violations): History[] {
  const messages = (request?.messages ?? []).map((message) => ({ message: messageFrom(message) }));
  const tools = chatTools(request?.tools);
  return (response?.choices ?? []).map((read, i) => {
    const choice = choiceFrom(read, [...loc, "response", "choices", i], issues);
    const promptTokenIds = choice.promptTokenIds ?? response?.prompt_token_ids ?? null;
    const item = { choice: { ...choice, promptTokenIds }, at: `${at}.response.choices[${i}]` };
    return { items: [...messages, item], tools, requestAt: `${at}.request` };
  });
}

// Converts parsed messages and choices to items of a history. A choice keeps its token ids and log-probabilities, in
// any form that servers use. Missing ones stay null.

type Tools = Parameters<typeof chatTools>[0];

/** `loc` is the path of the items. */
function historyFrom(items: readonly WireHistoryItem[], tools: Tools, loc: Loc, issues: Violations): History {
  return { items: items.map((item, i) => itemFrom(item, [...loc, i], issues)), tools: chatTools(tools) };
}

function itemFrom(item: WireHistoryItem, loc: Loc, issues: Violations): HistoryItem {
  if (!("role" in item)) return { choice: choiceFrom(item, loc, issues) };
  const message = messageFrom(item);
  // an assistant message with log-probabilities counts as a choice
  const isChoice = item.role === "assistant" && (item.logprobs ?? null) !== null;
  return isChoice ? { choice: { message, ...sampled(item, loc, issues) } } : { message };
}

function choiceFrom(choice: WireChoice, loc: Loc, issues: Violations): SampledChoice {
  return { message: messageFrom(choice.message), ...sampled(choice, loc, issues) };
}

function messageFrom(message: WireHistoryMessage | WireChoice["message"]): HistoryMessage {
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

/** Reading a group of long trajectories at once takes seconds, so its trajectories are read one by one. */
export const GROUP_PARTS: Streamed = { trajectory_groups: { trajectories: null } };

/** A trajectory has captured exchanges or these fields, not both. */
const SPELLED_OUT = ["messages_and_choices", "tools", "additional_histories"];

/** Reads a trajectory, or the group itself, which follows its trajectories and arrives without them. */
export function groupPartFrom(value: unknown, loc: Loc, issues: Violations): GroupPart | undefined {
  if (loc.at(-2) === "trajectories") return trajectoryFrom(value, loc, issues);
  const group = readTraining(TrajectoryGroupBody, value, issues, loc);
  return group && { trajectories: [], exceptions: group.exceptions?.length ?? 0, metrics: group.metrics ?? {} };
}

function trajectoryFrom(value: unknown, loc: Loc, issues: Violations): Trajectory | undefined {
  const other = isJsonObject(value) ? besideExchanges(value) : undefined;
  if (other !== undefined) {
    issues.add([...loc, "exchanges"], "value_error", `Value error, give exchanges or ${other}, not both`);
    return undefined;
  }
  const read = readTraining(TrajectoryBody, value, issues, loc);
  return (
    read && {
      histories: exchangeHistories(read, loc, issues) ?? spelledOut(read, loc, issues),
      reward: read.reward ?? 0,
      initialPolicyVersion: read.initial_policy_version ?? null,
      metrics: read.metrics ?? {},
    }
  );
}

function spelledOut(trajectory: WireTrajectory, loc: Loc, issues: Violations): History[] {
  const { messages_and_choices: items, tools, additional_histories: more } = trajectory;
  return [
    historyFrom(items ?? [], tools, [...loc, "messages_and_choices"], issues),
    ...(more ?? []).map((history, i) => {
      const at = [...loc, "additional_histories", i, "messages_and_choices"];
      return historyFrom(history.messages_and_choices, history.tools, at, issues);
    }),
  ];
}

/** A field that conflicts with captured exchanges. Checked before the fields are read. */
function besideExchanges(trajectory: JsonObject): string | undefined {
  const { exchanges } = trajectory;
  const isCaptured = isJsonObject(exchanges) && EXCHANGE_KINDS.some((kind) => hasElements(exchanges, kind));
  return isCaptured ? SPELLED_OUT.find((field) => hasElements(trajectory, field)) : undefined;
}

function hasElements(object: JsonObject, field: string): boolean {
  const value = object[field];
  return Array.isArray(value) && value.length > 0;
}

export function exampleFrom(value: unknown, loc: Loc, issues: Violations): SftExample | undefined {
  const example = readTraining(ExampleBody, value, issues, loc);
  if (example === undefined) return undefined;
  const messages = example.messages.map(messageFrom);
  if (messages.at(-1)?.role !== "assistant") {
    const rule = "Value error, the last message must have the role assistant";
    issues.add([...loc, "messages"], "value_error", rule);
  }
  return { messages, tools: chatTools(example.tools) };
}
