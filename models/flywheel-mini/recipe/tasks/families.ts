// All families with their share of the data, the mixing of families into longer conversations, and the function that draws a
// conversation of a split. A conversation, or a part of one, whose user text belongs to the other split is thrown away. So the
// splits never share a prompt, and no held-out prompt is a turn in training.

import { isTestPrompt } from "../hand-cases.ts";
import { arithmetic, sum, wordProblem } from "./arithmetic.ts";
import { calendar } from "./calendar.ts";
import { questionOrStatement, sentiment, whichClass } from "./classify.ts";
import { compareNumbers, ranking } from "./compare.ts";
import { type Conversation, promptKey } from "./conversation.ts";
import { extract } from "./extract.ts";
import { freeJson } from "./free-json.ts";
import { freeTool } from "./free-tools.ts";
import { jsonKeys } from "./json-keys.ts";
import { jsonOrder } from "./json-order.ts";
import { factList, joinItems, list, oddOneOut } from "./lists.ts";
import { echo, lookup } from "./lookup.ts";
import { memory } from "./memory.ts";
import { oneWord, plainQuestion } from "./one-word.ts";
import { passage } from "./passage.ts";
import { people } from "./people.ts";
import { Rng } from "./rng.ts";
import { persona, standingOrder } from "./rules.ts";
import { type Draw, type Split, splitOf } from "./split.ts";
import { talk, topic, topicKind } from "./talk.ts";
import { textOperation } from "./text-ops.ts";
import { withThought } from "./thought.ts";
import { toolUse } from "./tools.ts";
import { wordTool } from "./word-tools.ts";
import { note, sentenceWith, story } from "./writing.ts";
import { plainYesNo, trueOrFalse, yesNo } from "./yes-no.ts";

type Make = (draw: Draw) => Conversation;

const chat: readonly (readonly [Make, number])[] = [
  [talk, 6],
  [topic, 4],
  [plainQuestion, 2],
  [plainYesNo, 1],
  [calendar, 0.5],
];
/** A part of a longer conversation, which must itself be on the right side. */
const part =
  (make: Make): Make =>
  (draw) =>
    drawOf(make, draw);
const chatty = part((draw) => draw.rng.weighted(chat)(draw));
const short = part((draw) =>
  draw.rng.weighted([...chat, [oneWord, 2], [yesNo, 1], [arithmetic, 2], [list, 0.5], [textOperation, 1]] as const)(
    draw,
  ),
);

/** Two to four exchanges of different families, one after the other. */
const mixed: Make = (draw) => {
  const count = draw.rng.weighted([
    [2, 5],
    [3, 3],
    [4, 1],
  ]);
  const parts: Conversation[] = [];
  while (parts.length < count) {
    const made = drawOf((inner) => inner.rng.weighted([...singles, ...chat] as const)(inner), draw);
    if (made.messages[0]?.role === "user" && made.tools === undefined && made.documents === undefined) parts.push(made);
  }
  const last = parts[parts.length - 1] as Conversation;
  return { ...last, family: "mixed", messages: parts.flatMap((part) => part.messages) };
};

const singles: readonly (readonly [Make, number])[] = [
  [talk, 40],
  [topic, 14],
  [topicKind, 1],
  [plainQuestion, 4],
  [oneWord, 12],
  [yesNo, 9],
  [plainYesNo, 2],
  [trueOrFalse, 1],
  [jsonKeys, 12],
  [freeJson, 14],
  [extract, 14],
  [list, 4],
  [factList, 1],
  [oddOneOut, 1],
  [joinItems, 0.5],
  [textOperation, 18],
  [arithmetic, 30],
  [wordProblem, 2],
  [compareNumbers, 9],
  [ranking, 3],
  [calendar, 8],
  [passage, 22],
  [sentiment, 1.5],
  [whichClass, 1],
  [questionOrStatement, 0.5],
  [lookup, 7],
  [echo, 2],
  [story, 2],
  [sentenceWith, 1.5],
  [note, 1],
];
const all: readonly (readonly [Make, number])[] = [
  ...singles,
  [toolUse, 16],
  [freeTool, 12],
  [wordTool, 8],
  [jsonOrder, 6],
  [(draw) => memory(draw, short), 20],
  [(draw) => people(draw, short), 12],
  [(draw) => standingOrder(draw, chatty), 4],
  [persona, 1.5],
  [mixed, 8],
];

/**
 * Draws until the prompt is on the draw's side. Prompts written by hand for tests are on neither. In training, every single
 * turn must be on its side too.
 */
export function drawOf(make: Make, draw: Draw): Conversation {
  for (let i = 0; i < 2000; i++) {
    const conversation = make(draw);
    const key = promptKey(conversation);
    if (splitOf(key) !== draw.split || isTestPrompt(key)) continue;
    if (draw.split === "heldout" || turnsOf(conversation).every((turn) => splitOf(turn) === "train"))
      return conversation;
  }
  throw new Error(`no ${draw.split} prompt found in 2000 draws`);
}

const turnsOf = (conversation: Conversation): string[] =>
  conversation.messages
    .filter((message) => message.role === "user")
    .map((message) => promptKey({ family: "", messages: [message] }));

/** Training or held-out conversation number `index` of a seed. Each can be made without the others. */
export function conversation(seed: string, split: Split, index: number): Conversation {
  const draw: Draw = { rng: new Rng(`${seed}/${split}/${index}`), split };
  return withThought(
    draw,
    drawOf((inner) => inner.rng.weighted(all)(inner), draw),
  );
}

/** The families that the score table names, each with a way to draw its held-out cases. */
export const scored: Readonly<Record<string, Make>> = {
  "one-word": oneWord,
  "yes-no-maybe": yesNo,
  json: jsonKeys,
  "extract-json": extract,
  "add-2": (draw) => sum(draw, "+", 2, false),
  "add-3": (draw) => sum(draw, "+", 3, false),
  "add-3-think": (draw) => sum(draw, "+", 3, true),
  "subtract-2": (draw) => sum(draw, "-", 2, false),
  multiply: (draw) => sum(draw, "*", 1, false),
  tool: toolCallOnly,
  passage,
  "name-memory": nameMemory,
  list,
  "text-ops": textOperation,
  compare: compareNumbers,
  calendar,
};

function toolCallOnly(draw: Draw): Conversation {
  for (;;) {
    const made = toolUse(draw);
    if (made.check?.kind === "tool") return made;
  }
}

/** A name told in the first turn and asked for in the third or a later one. */
function nameMemory(draw: Draw): Conversation {
  for (;;) {
    const made = memory(draw, short);
    if (made.family === "memory-name" && made.messages.filter((message) => message.role === "user").length >= 3)
      return made;
  }
}
