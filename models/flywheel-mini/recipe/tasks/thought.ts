// Thinking for families without their own working: a sentence or two that names the task, so that the model fills its think
// block sensibly for any question.

import type { Conversation } from "./conversation.ts";
import type { Draw } from "./split.ts";
import { say } from "./wording.ts";

const thoughts: Readonly<Record<string, string>> = {
  talk: "{This is small talk.|The user is chatting with me.|The user talks to me.} {I will answer in a friendly way.|A short friendly answer is right.}",
  topic:
    "{The user asks about a topic.|This is a question about a thing I know.} {I will explain it in simple words.|I will say what I know.}",
  question: "{This is a knowledge question.|The user wants a fact.} {The answer is: |I know this: }$a",
  "one-word":
    "{The answer must be one word.|The user wants a single word.|One word is asked for.} {It is|The word is} $a.",
  "yes-no": "{The answer must be yes, no or maybe.|I may only answer yes, no or maybe.} {I choose|It is} $a.",
  "true-false": "{I have to say true or false.|The answer is true or false.} It is $a.",
  "json-keys":
    "{The user wants JSON.|The answer must be JSON.} {I use exactly the asked keys.|I keep to the asked keys.}",
  extract:
    "{I look for the values in the sentence.|The values are in the sentence.} {Then I write JSON.|The answer is JSON.}",
  list: "{The user wants a list.|I have to write a list.} {I keep to the asked number.|I count the items.}",
  calendar: "{This is about dates or units.|I think of the calendar or the unit.} {The answer is|It is} $a",
  compare: "{I compare the numbers.|I look at the numbers.} {The answer is|It is} $a.",
  classify: "{I have to choose a class.|I choose one of the classes.} {It is|I choose} $a.",
  writing:
    "{The user wants a short text.|I have to write something short.} {I keep it simple.|I will write a few words.}",
  lookup: "{I look for the entry.|I search the text.} {It is|The answer is} $a",
  passage: "{I look into the text.|The text tells it.} {The answer is|It says}: $a",
  mixed: "{I look at the last question.|The last message counts.}",
  "memory-name": "{The user told me this before.|I look back at what the user said.} $a",
  memory: "{The user told me this before.|I look back at what the user said.} $a",
  "standing-order": "{I have to follow the instruction.|The instruction comes first.}",
  "tool-none": "{No tool is needed here.|I can answer without a tool.}",
};

/** In 1 of 14 conversations without a think block, the last reply gets one. */
export function withThought(draw: Draw, conversation: Conversation): Conversation {
  const template = thoughts[conversation.family];
  const last = conversation.messages[conversation.messages.length - 1];
  if (template === undefined || conversation.thinking === true || last?.role !== "assistant" || last.content === null)
    return conversation;
  if (last.reasoning !== undefined || !draw.rng.chance(1 / 14)) return conversation;
  const reasoning = say(draw.rng, template, { a: last.content.slice(0, 80) });
  return { ...conversation, thinking: true, messages: [...conversation.messages.slice(0, -1), { ...last, reasoning }] };
}
