// Answering from a given text: happenings and profiles, handed over in the message, in the system text or as
// documents. Some questions have no answer in the text, and the right reply says so.

import { asksOf } from "./bank.ts";
import { type Conversation, exchange, system } from "./conversation.ts";
import { happening } from "./happenings.ts";
import { naturalPassage } from "./passage-bank.ts";
import { profile } from "./profiles.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { say } from "./wording.ts";

/** $p the passage, $q the question. */
const layouts: readonly string[] = [
  "$p\n\n{Question: |}$q",
  "$p $q",
  "{Read this|Read the text|Read this text}[ and answer]{:|.}\n$p\n{Question: |}$q",
  "{Text|Passage|Context|Story|Document}: $p\n{Question|Q}: $q",
  "$q\n\n{Text|Passage|Context}: $p",
  "{Use|Look at} {this text|the following text} to answer{:|.} $p\n\n$q",
  "{Answer the question|Answer} {from|with|based on} the text{.|:}\n\n$p\n\n$q",
  "{Here is|This is} {a text|a story|some information}: $p {My question|Question|Now tell me}: $q",
  '"$p" $q',
  "{Based on|According to} {the text|this text}{:|,} $q\n\n$p",
  "$p\n$q {Answer briefly|Short answer, please|Keep it short}.",
  '{I read this|Someone wrote}: "$p" $q',
  ...asksOf("passage"),
];
const noAnswer = ["The text does not say.", "The text does not say that.", "That is not in the text."];

interface Reading {
  title: string;
  text: string;
  ask: string;
  answer: string;
  known: boolean;
}

function reading(rng: Rng): Reading {
  if (rng.chance(0.45)) {
    const { text, ask, answer } = naturalPassage(rng);
    return { title: "Text", text, ask, answer, known: true };
  }
  if (rng.chance(0.5)) {
    const list = Array.from(
      {
        length: rng.weighted([
          [1, 1],
          [2, 3],
          [3, 4],
          [4, 3],
          [5, 1],
        ]),
      },
      () => happening(rng),
    );
    const text = list.map((item) => item.text).join(" ");
    const item = rng.pick(list);
    const missing = item.unanswered;
    if (missing.length > 0 && rng.chance(0.1))
      return { title: "Story", text, ask: rng.pick(missing), answer: rng.pick(noAnswer), known: false };
    const question = rng.pick(item.questions);
    return { title: "Story", text, ask: question.ask, answer: question.answer, known: true };
  }
  const about = profile(rng, rng.int(2, 6));
  if (rng.chance(0.08)) {
    const other = profile(rng, 6).questions.find(
      (question) => !about.questions.some((known) => known.ask.slice(0, 12) === question.ask.slice(0, 12)),
    );
    if (other !== undefined)
      return {
        title: about.title,
        text: about.sentences.join(" "),
        ask: other.ask,
        answer: rng.pick(noAnswer),
        known: false,
      };
  }
  const question = rng.pick(about.questions);
  return {
    title: about.title,
    text: about.sentences.join(" "),
    ask: question.ask,
    answer: question.answer,
    known: true,
  };
}

export function passage(draw: Draw): Conversation {
  const { rng } = draw;
  let read: Reading;
  do read = reading(rng);
  while (splitOf(`passage:${read.text}`) !== draw.split);
  const reply = read.known ? `${read.answer.charAt(0).toUpperCase()}${read.answer.slice(1)}.` : read.answer;
  const check = {
    kind: "contains" as const,
    any: read.known ? [read.answer.replace(/^(an?|the) /, "")] : ["not say", "not in the text"],
  };
  const thought =
    rng.chance(0.06) && read.known ? `The question is: ${read.ask} The text says it: ${read.answer}.` : undefined;
  const place = rng.weighted([
    ["message", 8],
    ["document", 2],
    ["system", 1],
  ] as const);
  if (place === "message") {
    return exchange(
      "passage",
      say(rng, pickWording(draw, layouts), { p: read.text, q: read.ask }),
      reply,
      check,
      thought,
    );
  }
  const conversation = exchange("passage", read.ask, reply, check, thought);
  if (place === "system") {
    conversation.messages.unshift(
      system(say(rng, "{Use this text to answer|Answer from this text|Information}: $p", { p: read.text })),
    );
    return conversation;
  }
  const others = Array.from({ length: rng.int(0, 2) }, () => {
    const about = profile(rng, 2);
    return { title: about.title, text: about.sentences.join(" ") };
  });
  conversation.documents = rng.shuffle([{ title: read.title, text: read.text }, ...others]);
  return conversation;
}
