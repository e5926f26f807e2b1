// Sorting short texts into classes: mood, subject, question or statement.

import { sentences, sets } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const positive = [
  "{I love|I really like|I enjoyed} {this|the} {movie|book|hotel|song|cake|phone|game}{.|!}",
  "The {food|service|show|trip|weather} was {great|wonderful|excellent|fantastic|very good}{.|!}",
  "{What a|It was a} {lovely|great|beautiful|wonderful} {day|evening|gift|story}{.|!}",
  "{I am so|I feel} {happy|glad|thankful|proud} {today|about this|with it}{.|!}",
  "{Best|Nicest} {meal|place|lesson|shop} {ever|in town}{.|!}",
  "The staff was {kind|friendly|helpful} and the room was {clean|bright}{.|!}",
];
const negative = [
  "{I hate|I don't like|I did not enjoy} {this|the} {movie|book|hotel|song|cake|phone|game}{.|!}",
  "The {food|service|show|trip|weather} was {bad|terrible|awful|horrible|very poor}{.|!}",
  "{What a|It was a} {boring|terrible|sad|bad} {day|evening|gift|story}{.|!}",
  "{I am so|I feel} {sad|angry|tired|disappointed} {today|about this|with it}{.|!}",
  "{Worst|Dirtiest} {meal|place|lesson|shop} {ever|in town}{.|!}",
  "The staff was {rude|slow|unfriendly} and the room was {dirty|dark}{.|!}",
];
const asks: readonly string[] = [
  "{Is this {review|text|sentence|comment} positive or negative|Positive or negative|Is the mood positive or negative}{:|?} $s",
  "$s {Is that|Is this} {positive or negative|a positive or a negative text}?",
  "{What is the sentiment|Classify the sentiment|Tell me the sentiment} of {this|the text}{: $s| (positive or negative): $s}",
  "{Classify|Label} {this|the text} as positive or negative: $s",
  "{Text|Review}: $s\nSentiment:",
  "{Did the writer like it|Is the writer happy}? Say positive or negative. $s",
];

export function sentiment(draw: Draw): Conversation {
  const { rng } = draw;
  let text: string;
  let good: boolean;
  do {
    good = rng.chance(0.5);
    text = say(rng, rng.pick(good ? positive : negative));
  } while (splitOf(`sentiment:${text}`) !== draw.split);
  const prompt = asTyped(rng, say(rng, pickWording(draw, asks), { s: text }));
  const answer = good ? "positive" : "negative";
  return exchange("classify", prompt, good ? "Positive" : "Negative", {
    kind: "choice",
    options: ["positive", "negative"],
    answer,
  });
}

/** "Is a pear a fruit or a tool?" with a one-word answer. */
export function whichClass(draw: Draw): Conversation {
  const { rng } = draw;
  const usable = sets.filter(([name]) =>
    /^(fruits|vegetables|birds|insects|colors|trees|flowers|drinks|sports|tools|vehicles|jobs|metals|countries|cities|planets|months|languages)$/.test(
      name,
    ),
  );
  const [[set, members], [other]] = rng.sample(usable, 2) as [[string, string[]], [string, string[]]];
  const single = (name: string) => ({ countries: "country", cities: "city" })[name] ?? name.replace(/s$/, "");
  const [x, y] = rng.shuffle([single(set), single(other)]) as [string, string];
  const prompt = say(
    rng,
    "{Is $w a $x or a $y|$w: $x or $y|What is $w, a $x or a $y|Choose $x or $y for this word: $w}?",
    { w: rng.pick(members), x, y },
  );
  const answer = single(set);
  const upper = answer.charAt(0).toUpperCase() + answer.slice(1);
  return exchange("classify", asTyped(rng, prompt.replace(/\ba (?=[aeio])/g, "an ")), upper, {
    kind: "choice",
    options: [x, y],
    answer,
  });
}

const questions = [
  "Where is the station",
  "How old is your brother",
  "Do you like tea",
  "What time is it",
  "Who wrote this letter",
  "Can I help you",
  "Why are you late",
  "Is the shop open",
  "When does the train leave",
  "Which color do you want",
];

export function questionOrStatement(draw: Draw): Conversation {
  const { rng } = draw;
  const asking = rng.chance(0.5);
  const text = asking ? `${rng.pick(questions)}?` : `${rng.pick(sentences)}.`;
  const prompt = say(rng, '{Is this a question or a statement|Question or statement}{:|?} {$s|"$s"}', { s: text });
  return exchange("classify", prompt, asking ? "Question" : "Statement", {
    kind: "choice",
    options: ["question", "statement"],
    answer: asking ? "question" : "statement",
  });
}
