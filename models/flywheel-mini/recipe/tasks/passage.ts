// Answering from a given text: events and profiles in the message, in the system text or as documents. Some questions have no
// answer in the text, and the right reply says so.

import { asksOf } from "./bank.ts";
import { type Conversation, exchange, system } from "./conversation.ts";
import { happening } from "./happenings.ts";
import { personName } from "./made-up.ts";
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
/** Hurried layouts; $r the question as typed carelessly, $e its question word last, $n and $m any names. */
const casualLayouts: readonly string[] = [
  "$q\n\n$p",
  "$r\n\n$p",
  "$p\n\n$r",
  "$p\n$r",
  "$r\n$p",
  "$r {-|--|...|:} $p",
  "$q\n\n$p",
  "{pls|please|plz|can you|could you|hey,} tell me{,|:|} $r\n\n$p",
  "$p\n\n{pls|please|plz|now|ok,|so} tell me{,|:|} $r",
  "{Dear|Hi|Hello} $n,\n$p\n{Yours|Love|Best wishes|See you soon|Bye},\n$m\n\n{$q|$r}",
  "$q\n\n{Dear|Hi|Hello} $n, $p {Yours|Love|Best wishes|Greetings}, $m",
  "{I got this letter|This letter came today|My friend wrote me|here is a letter|got this mail}{:|.}\n\n{Dear|Hi} $n, $p {Yours|Love}, $m\n\n{$q|$r}",
  "{Note|Memo|Message|note|Diary}: $p\n\n{$q|$r}",
  '{I found this note|There was a note on the table|A note says|this note was on the door}{:|.} {$p|"$p"} {$q|$r}',
  "{$q|$r}\n\n{note|Note|message|Letter|from a letter|my notes}: $p",
  "$p\n\n$e",
  "$p $e",
  "$e\n\n$p",
  "$p {so|ok so|and now|well,} $r",
  "$r {here is|heres|this is} {the text|what i have|all i know|the story|what it says}: $p",
  "{text|story|info}: $p\n{q|question|my question}: $r",
  "{q|question}: $r\n{text|story|info}: $p",
  "{quick question|quick one|one question|just wondering|hm}{,|:| -} $r\n\n$p",
  "{i read this|someone sent me this|saw this today|found this}{:|.} $p\n\n$r",
  "$p\n\n{$q|$r} {pls|please|thx|thanks}",
  "$p {I forgot:|i forgot,|remind me,|what i want to know:|i wonder,} $r",
  "{can you read this|read this pls|look at this|check this}{:|.|\n}$p\n{$q|$r}",
  "{i dont want to read it all|too long for me|no time to read}{,|.} $r\n\n$p",
  "$p\n---\n{$q|$r}",
  "{$q|$r}\n---\n$p",
  "> $p\n\n{$q|$r}",
  "$r ($p)",
  "{see below|look below|text below|answer is below somewhere}{,|:|.} $r\n\n$p",
  "$q {It is|It must be|The answer is} {in here|in this text|somewhere here}{:|.}\n\n$p",
];

/** The question typed carelessly: a lower-case first letter or no capitals at all, sometimes no question mark. */
function careless(rng: Rng, ask: string): string {
  const small = rng.chance(0.4) ? ask.toLowerCase() : ask.charAt(0).toLowerCase() + ask.slice(1);
  return rng.chance(0.55) ? small.replace(/\?$/, "") : small;
}

/** "What is the dog's name?" as "the dog's name is what?"; other questions typed carelessly. */
function wordLast(rng: Rng, ask: string): string {
  const found = /^(What|Who|Where|When) (is|was) ((?:the|his|her|its|their|\w+'s) \w+(?:'s \w+)?)\?$/.exec(ask);
  if (found === null || /(ed|ing|open|held|made|built|kept|born|from)$/.test(found[3] as string))
    return careless(rng, ask);
  const turned = `${found[3]} ${found[2]} ${(found[1] as string).toLowerCase()}`;
  return `${rng.chance(0.5) ? turned : turned.charAt(0).toUpperCase() + turned.slice(1)}${rng.pick(["?", "?", ""])}`;
}

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
    const values = { p: read.text, q: read.ask, r: careless(rng, read.ask), e: wordLast(rng, read.ask) };
    const layout = pickWording(draw, rng.chance(0.4) ? casualLayouts : layouts);
    const prompt = say(rng, layout, { ...values, n: personName(rng), m: personName(rng) });
    return exchange("passage", prompt, reply, check, thought);
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
