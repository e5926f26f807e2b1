// Compares the replica's /tokenize with our tokenizer and chat template. A replica with another tokenizer would read
// every prompt as something else, and its tokens would train the wrong text.

import { isJsonObject } from "../../json/json.ts";
import { encodeChat } from "../../text/prompt.ts";
import type { Bench } from "./bench.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { PROBE_CONVERSATIONS, probeTexts } from "./probe-texts.ts";
import { errorText } from "./replica.ts";

const SAME_FILES = "Serve the same checkpoint on both sides: compare tokenizer.json and tokenizer_config.json.";

/** Requests that are sent together. */
const AT_ONCE = 16;

export async function* checkText(bench: Bench): AsyncGenerator<Finding> {
  yield await tokenizer(bench);
  if (bench.ours.text.defaultTemplate !== null) yield await chatTemplate(bench);
}

async function tokenizer(bench: Bench): Promise<Finding> {
  const { text } = bench.ours;
  const texts = probeTexts(Object.values(text.specialTokens));
  const asked = texts.flatMap((prompt) => [true, false].map((addSpecialTokens) => ({ prompt, addSpecialTokens })));
  const differing: string[] = [];
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const some = asked.slice(from, from + AT_ONCE);
    const replies = await Promise.all(
      some.map(({ prompt, addSpecialTokens }) => tokenise(bench, { prompt, add_special_tokens: addSpecialTokens })),
    );
    for (const [i, theirs] of replies.entries()) {
      if (typeof theirs === "string") return noTokenize(theirs);
      const { prompt, addSpecialTokens } = some[i]!;
      const ours = text.tokenizer.encode(prompt, { addSpecialTokens });
      if (theirs.join() !== ours.join()) differing.push(difference(JSON.stringify(prompt), ours, theirs));
    }
  }
  if (differing.length === 0) return ok("tokenizer", `the same token ids for ${texts.length} texts`);
  const detail = `${differing.length} of ${asked.length} encodings differ, first ${differing[0]}`;
  return wrong("tokenizer", detail, SAME_FILES);
}

async function chatTemplate(bench: Bench): Promise<Finding> {
  const differing: string[] = [];
  for (const { name, messages, fields } of PROBE_CONVERSATIONS) {
    const theirs = await tokenise(bench, { messages, ...fields });
    if (typeof theirs === "string") {
      differing.push(`${name}: ${theirs}`);
      continue;
    }
    const ours = await encodeChat(bench.ours.text, {
      messages: messages.map(({ role, content }) => ({ role, texts: [content] })),
      addGenerationPrompt: fields.add_generation_prompt !== false,
    });
    if (theirs.join() !== ours.join()) differing.push(difference(name, ours, theirs));
  }
  const count = PROBE_CONVERSATIONS.length;
  if (differing.length === 0) return ok("chat-template", `the same prompts for ${count} conversations`);
  const advice =
    "Flywheel renders conversations itself, so its replies are right. Give both sides the same --chat-template if others call the replica.";
  return warning("chat-template", `${differing.length} of ${count} prompts differ, first ${differing[0]}`, advice);
}

function noTokenize(reason: string): Finding {
  const advice = "Flywheel works without /tokenize, but nothing shows that both sides have the same tokenizer.";
  return warning("tokenizer", `/tokenize: ${reason}`, advice);
}

/** Token ids, or why there are none. */
async function tokenise({ replica, served }: Bench, fields: Record<string, unknown>): Promise<number[] | string> {
  const { status, body } = await replica.post("/tokenize", { model: served.name, ...fields });
  const tokens = isJsonObject(body) ? body.tokens : null;
  return status === 200 && Array.isArray(tokens) ? tokens.map(Number) : `${status} ${errorText(body)}`;
}

function difference(what: string, ours: readonly number[], theirs: readonly number[]): string {
  const at = ours.findIndex((id, i) => id !== theirs[i]);
  const from = Math.max(0, at === -1 ? ours.length : at);
  const shown = (ids: readonly number[]) => `[${from > 0 ? "…," : ""}${ids.slice(from, from + 5)}]`;
  return `${what}: ours ${shown(ours)}, theirs ${shown(theirs)}`;
}
