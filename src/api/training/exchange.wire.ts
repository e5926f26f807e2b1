// Reads a trajectory given as captured API calls: requests with their responses. Trains every choice of every response.

import type { History } from "../../training/data/trajectory.ts";
import { chatTools } from "../request/messages.ts";
import type { Loc, Violations } from "../request/violations.ts";
import { choiceFrom, messageFrom } from "./history.wire.ts";
import type { WireExchange, WireTrajectory } from "./trajectory.schema.ts";

export const EXCHANGE_KINDS = ["chat_completions", "completions", "responses", "messages"] as const;

/**
 * null when nothing was captured. If every call has its prompt's ids, the calls form one history, joined by those ids.
 * Otherwise each choice is a separate history that follows the messages of its request.
 */
export function exchangeHistories({ exchanges }: WireTrajectory, loc: Loc, issues: Violations): History[] | null {
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
