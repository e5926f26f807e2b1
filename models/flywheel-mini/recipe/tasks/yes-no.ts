// Questions answered with yes, no or maybe (or true / false), with many ways to ask for the format. The same questions also
// appear without it, answered in a short sentence. "Maybe" is the answer if nobody in the chat can know.

import { asksOf, capitalised, factsOf, plainChoices, topics, withArticle } from "./bank.ts";
import { type Conversation, exchange, system } from "./conversation.ts";
import { personName } from "./made-up.ts";
import { sizes } from "./one-word.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

interface Question {
  text: string;
  answer: "yes" | "no" | "maybe";
  /** The rest of the full-sentence answer after "Yes, " or "No, ". */
  because: string;
}

const formats: readonly string[] = [
  '$q {Answer|Reply|Respond}[ only|] {with |}{yes, no or maybe|"yes", "no" or "maybe"|yes, no, or maybe}{.|}',
  '{Answer|Reply|Respond} {with |}{yes, no or maybe|"yes", "no" or "maybe"|yes/no/maybe}{:|.} $q',
  "$q {Yes, no or maybe|Yes/no/maybe|Yes, no, maybe}?",
  "$q {Say|Write|Pick|Choose} {yes, no or maybe|one of: yes, no, maybe|one of yes, no, maybe}{.|}",
  "$q (yes, no or maybe)",
  "$q {Your answer {must|should} be|The answer is one of} {yes, no or maybe|yes / no / maybe}{.|}",
  "$q {Use only|Only use|Just say|Use one of the words} {yes, no or maybe|yes, no, maybe}{.| and nothing else.}",
  "{Yes, no or maybe|Yes, no, or maybe}{:|?} $q",
  "{Tell me|Please tell me} yes, no or maybe{:|.} $q",
  "$q {Options|Choices|Possible answers}: yes, no, maybe.",
  "$q Please {reply|answer} {only |}{with |}{yes, no or maybe|yes/no/maybe}.",
  "Question: $q {Answer|Reply}: {yes, no or maybe|yes/no/maybe}?",
  ...asksOf("yes-no-maybe"),
];
const yesNoFormats: readonly string[] = [
  '$q {Answer|Reply|Respond}[ only|] {with |}{yes or no|"yes" or "no"}{.|}',
  "$q {Yes or no|Yes/no}?",
  "{Answer|Reply} {with |}{yes or no|yes/no}{:|.} $q",
  "$q {Just say|Only say|Say|Write} yes or no{.|}",
  "{Yes or no|Is it yes or no}{:|?} $q",
  "$q (yes/no)",
];
const systemFormats = [
  "{Answer|Reply|Respond}[ every question|] {only |}with yes, no or maybe.",
  "You can say only three words: yes, no and maybe.",
  "{Your only answers are|Use only the answers} yes, no and maybe.",
];

export function yesNo(draw: Draw): Conversation {
  const { rng } = draw;
  const question = yesNoQuestion(draw);
  const answer = capitalised(question.answer);
  const options = ["yes", "no", "maybe"];
  const check = { kind: "choice" as const, options, answer: question.answer };
  if (rng.chance(0.12)) {
    const conversation = exchange("yes-no", asTyped(rng, question.text), answer, check);
    conversation.messages.unshift(system(say(rng, rng.pick(systemFormats))));
    return conversation;
  }
  const twoWay = question.answer !== "maybe" && rng.chance(0.3);
  const format = pickWording(draw, twoWay ? yesNoFormats : formats);
  return exchange("yes-no", asTyped(rng, say(rng, format, { q: question.text })), answer, check);
}

/** Answers without a format: "Yes, a dog is an animal." */
export function plainYesNo(draw: Draw): Conversation {
  const { rng } = draw;
  const question = yesNoQuestion(draw);
  const opener = { yes: "Yes", no: "No", maybe: rng.pick(["Maybe", "I don't know", "I can't know that"]) }[
    question.answer
  ];
  return exchange("question", asTyped(rng, question.text), `${opener}, ${question.because}`);
}

const trueFalse = [
  "{True or false|Is it true or false}{:|?} $s",
  "$s {True or false|Is that true or false}?",
  "{Say|Answer|Reply|Answer with} true or false{:|.} $s",
  "{Is this statement|Is the following} true or false{:|?} $s",
];

export function trueOrFalse(draw: Draw): Conversation {
  const { rng } = draw;
  const [statement, truth] = numberOrKindStatement(draw);
  const prompt = say(rng, rng.pick(trueFalse), { s: `${capitalised(statement)}.` });
  const check = { kind: "choice" as const, options: ["true", "false"], answer: truth ? "true" : "false" };
  return exchange("true-false", asTyped(rng, prompt), truth ? "True" : "False", check);
}

function numberOrKindStatement(draw: Draw): [string, boolean] {
  const { rng } = draw;
  const truth = rng.chance(0.5);
  if (rng.chance(0.3)) {
    const [a, b] = [rng.int(1, 99), rng.int(1, 99)];
    return [`${a} is ${rng.pick(["bigger", "greater", "larger"])} than ${b}`, a > b];
  }
  if (rng.chance(0.5)) {
    const about = rng.pick(topics);
    const kind = truth
      ? about.kind
      : otherThan(
          draw,
          topics.map((t) => t.kind),
          about.kind,
        );
    return [`${about.single} is ${withArticle(kind)}`, kind === about.kind];
  }
  const list = factsOf(rng.pick(["opposite", "color", "capital"]));
  const relation = list === factsOf("opposite") ? "opposite" : list === factsOf("color") ? "color" : "capital";
  const [key, value] = rng.pick(list);
  const said = truth
    ? value
    : otherThan(
        draw,
        list.map((pair) => pair[1]),
        value,
      );
  return [`the ${relation} of ${key} is ${said}`, said === value];
}

function otherThan(draw: Draw, values: readonly string[], not: string): string {
  for (;;) {
    const value = draw.rng.pick(values);
    if (value !== not) return value;
  }
}

const can: readonly (readonly [string, string[], string[]])[] = [
  ["fish", ["swim", "live in water"], ["read", "fly a plane", "climb a ladder"]],
  ["birds", ["sing", "lay eggs"], ["drive", "write letters"]],
  ["dogs", ["bark", "run", "swim"], ["fly", "read books"]],
  ["cats", ["climb", "jump", "purr"], ["fly", "speak French"]],
  ["cows", ["give milk", "eat grass"], ["fly", "climb trees"]],
  ["pigs", ["eat", "walk"], ["fly", "sing opera"]],
  ["people", ["talk", "walk", "learn"], ["live without air", "fly without a machine"]],
  ["horses", ["run fast", "eat hay"], ["cook", "use a phone"]],
  ["stones", ["be heavy", "roll down a hill"], ["talk", "eat"]],
  ["airplanes", ["fly"], ["eat", "feel sad"]],
  ["babies", ["cry", "sleep"], ["drive a car"]],
  ["snakes", ["bite", "crawl"], ["walk on legs", "knit"]],
  ["trees", ["grow", "have leaves"], ["run", "sing"]],
  ["boats", ["float"], ["walk", "sleep"]],
  ["teachers", ["explain things", "read"], ["walk through walls"]],
];

const unknowable: readonly string[] = [
  "Will it {rain|snow|be sunny|be windy|be warm} {tomorrow|next week|next Sunday|on my birthday|in the evening}?",
  "Will {my team|our team|the blue team|my favorite team} {win|lose}[ the {game|match|race|final}]?",
  "Is {my friend|my sister|my brother|my neighbor|$name} {at home|asleep|happy|hungry|busy}[ right now| today| now]?",
  "{Will I|Am I going to} {pass the test|be rich one day|find my keys|win the lottery|get the job|like the movie|meet someone new|be famous}?",
  "Does $name like {pizza|tea|cats|music|chess|the sea|cheese}?",
  "{Will there be|Is there going to be} {a storm|good weather|a long line|much traffic|cake} {tomorrow|tonight|next week|at the party}?",
  "Has $name {read this book|eaten lunch|been to Rome|seen the sea|ever owned a dog}?",
  "Is there {a cat|a cake|someone|a letter} {in the box|behind the door|in the next room|in my bag}?",
  "Will $name {call me|come to the party|be late|win|visit us} {tomorrow|today|tonight|next week}?",
  "Could {people live on Mars|robots cook dinner for us|it snow} {one day|next year|some day}?",
  "Did $name {sleep well|go to the park|buy a hat|feed the dog|lose a coin}[ yesterday]?",
  "Is the {next car|next person I meet|stranger|house on the hill} {red|nice|tall|friendly|old}?",
];

function yesNoQuestion(draw: Draw): Question {
  const { rng } = draw;
  const style = rng.weighted([
    ["maybe", 6],
    ["common", 5],
    ["kind", 4],
    ["fact", 4],
    ["can", 3],
    ["number", 3],
    ["size", 3],
    ["parity", 1],
  ] as const);
  if (style === "maybe") {
    const text = say(rng, pickWording(draw, unknowable), { name: personName(rng) });
    return {
      text,
      answer: "maybe",
      because: rng.pick(["nobody can know that for sure.", "that is not something I can know.", "it depends."]),
    };
  }
  if (style === "common") {
    const [text, answer] = rng.pick(plainChoices);
    return {
      text,
      answer,
      because: { yes: "that is right.", no: "that is not right.", maybe: "I can't know that." }[answer],
    };
  }
  const truth = rng.chance(0.5);
  const answer = truth ? "yes" : "no";
  const not = truth ? "" : " not";
  if (style === "kind") {
    const about = rng.pick(topics.filter((topic) => topic.single !== "shoes"));
    const kind = truth
      ? about.kind
      : otherThan(
          draw,
          topics.map((t) => t.kind),
          about.kind,
        );
    const text = say(
      rng,
      "{Is $single $kind?|Would you say that $single is $kind?|Is it true that $single is $kind?}",
      { single: about.single, kind: withArticle(kind) },
    );
    return { text, answer, because: `${about.single} is${not} ${withArticle(kind)}.` };
  }
  if (style === "fact") {
    const relation = rng.pick(["opposite", "color", "capital", "plural", "past"]);
    const label = relation === "past" ? "past tense" : relation;
    const list = factsOf(relation);
    const [key, value] = rng.pick(list);
    const said = truth
      ? value
      : otherThan(
          draw,
          list.map((pair) => pair[1]),
          value,
        );
    const text = say(rng, "{Is $v the $l of $k?|Is the $l of $k $v?|Is it true that the $l of $k is $v?}", {
      v: said,
      l: label,
      k: key,
    });
    return { text, answer, because: `the ${label} of ${key} is${not} ${said}.` };
  }
  if (style === "can") {
    const [who, able, unable] = rng.pick(can);
    const what = rng.pick(truth ? able : unable);
    const text = rng.chance(0.7) ? `Can ${who} ${what}?` : `Are ${who} able to ${what}?`;
    return { text, answer, because: `${who} can${truth ? "" : "not"} ${what}.` };
  }
  if (style === "number") {
    let [a, b] = [rng.int(1, rng.pick([20, 100, 1000])), rng.int(1, rng.pick([20, 100, 1000]))];
    if (a === b) b++;
    if (a > b !== truth) [a, b] = [b, a];
    const word = rng.pick(["bigger", "greater", "larger", "more"]);
    return { text: `Is ${a} ${word} than ${b}?`, answer, because: `${a} is${not} ${word} than ${b}.` };
  }
  if (style === "parity") {
    const n = rng.int(1, 200);
    const word = (n % 2 === 0) === truth ? "even" : "odd";
    return {
      text: `Is ${n} ${rng.chance(0.5) ? `an ${word} number` : word}?`,
      answer,
      because: `${n} is${not} ${word}.`,
    };
  }
  const [bigger, smaller] = rng.pick(sizes);
  const [a, b] = truth ? [bigger, smaller] : [smaller, bigger];
  const [x, y] = [withArticle(a), withArticle(b)];
  const word = rng.pick(["bigger", "larger"]);
  return { text: `Is ${x} ${word} than ${y}?`, answer, because: `${x} is${not} ${word} than ${y}.` };
}
