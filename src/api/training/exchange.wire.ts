// A trajectory given as captured API calls instead of messages and choices: requests with their responses. Every choice
// of every response is trained.

import type { History } from "../../training/data/trajectory.ts";
import { choiceFrom, messageFrom } from "./choice.wire.ts";
import { Fields } from "./fields.ts";
import type { Issues } from "./issues.ts";

const KINDS = ["chat_completions", "completions", "responses", "messages"];
/** The other way to give a trajectory. */
const SPELLED_OUT = ["messages_and_choices", "tools", "additional_histories"];

/**
 * null when nothing was captured. Calls with their prompts' ids are one history, whose turns the ids put together; else
 * each choice is one, behind the messages of its request.
 */
export function exchangeHistories(trajectory: Fields, issues: Issues): History[] | null {
  const exchanges = new Fields(trajectory.object("exchanges") ?? {}, trajectory.at("exchanges"), issues);
  const captured = KINDS.filter((kind) => hasElements(exchanges, kind));
  if (captured.length === 0) return null;
  for (const kind of captured) {
    if (kind === "chat_completions") continue;
    exchanges.problem(kind, "value_error", "Value error, only chat_completions exchanges can be trained here");
  }
  const other = SPELLED_OUT.find((key) => hasElements(trajectory, key));
  if (other !== undefined) {
    trajectory.problem("exchanges", "value_error", `Value error, give exchanges or ${other}, not both`);
  }
  const histories = exchanges
    .objects("chat_completions")
    .flatMap(({ object, loc }) =>
      historiesOf(new Fields(object, loc, issues), `exchanges.chat_completions[${loc.at(-1)}]`, issues),
    );
  const choices = histories.flatMap(({ items }) => items.filter((item) => "choice" in item));
  return choices.every(({ choice }) => choice.promptTokenIds !== null) ? [{ items: choices, tools: null }] : histories;
}

/** `at`: where the exchange is in its trajectory. */
function historiesOf(exchange: Fields, at: string, issues: Issues): History[] {
  const request = new Fields(exchange.object("request") ?? {}, exchange.at("request"), issues);
  const response = new Fields(exchange.object("response") ?? {}, exchange.at("response"), issues);
  const prompt = response.integers("prompt_token_ids");
  const messages = request.objects("messages").map((m) => ({ message: messageFrom(m.object, m.loc, issues) }));
  const tools = request.tools("tools");
  return response.objects("choices").map(({ object, loc }) => {
    const choice = choiceFrom(object, loc, issues);
    const sampled = { ...choice, promptTokenIds: choice.promptTokenIds ?? prompt };
    const item = { choice: sampled, at: `${at}.response.choices[${loc.at(-1)}]` };
    return { items: [...messages, item], tools, requestAt: `${at}.request` };
  });
}

function hasElements(fields: Fields, key: string): boolean {
  return (fields.array(key)?.length ?? 0) > 0;
}
