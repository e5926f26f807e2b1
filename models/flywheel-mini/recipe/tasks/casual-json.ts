// Requests for JSON typed in a hurry: "json" in lower case, fragments in any order, few full stops, one key or single letters,
// and limiting words ("nothing more") that are not keys.

import { andList, capitalised, factsOf, shortAnswers } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { oneLine } from "./json-keys.ts";
import { filled, keysAndThing, someKeys } from "./json-parts.ts";
import { anyWord } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

/** $j "json", $s the thing, $t the thing without its article, $k the keys, $o "these two keys", $f "keys" or the like. */
const asks: readonly string[] = [
  "$j {for|about|of} $s{,| -|:} $f $k",
  "$j $t{:| -} $k{ pls| please| thx|}",
  "{pls |quick |}$j, $t, $f $k",
  "$t as $j {pls|please|plz|thx|}{,|:} $f $k",
  "$k of $s {as|in} $j{ pls| please|}",
  "$f = $k{,|;| -} $j {for|about|on} $s",
  "$f: $k{,|.|\n}{subject|topic|about|thing}: $t{,|.|\n}{format|output|type}: $j",
  "{quick|small|tiny|short|one} $j obj{ pls|}{,| -|:} $s{ w/| with|:} $k",
  "{gimme|give me|send|need|want} $s {as|in} $j w/ $k",
  "{gimme|i need|i want|can i get|lets see} {a |}$j {obj|object|thing} {for|about} $s {with|w/} $k",
  "{just|only} $k {for|of} $s, $j{ pls|}",
  "$s{,| -|:} {just|only} $k{,| -} {in |as |}$j",
  "$k, {as |in |}$j, {for|about} $s",
  "$t: $k ($j{ pls| only|})",
  "($j) $t -> $k",
  "$t > $j > $k",
  "{make|do|write|build} {me |}{a |}$j {of|for|about} $s {with|using} {only |just |}$k",
  "{make|invent|make up|think of} $s{,| and} {put|write|send} {the |}$k {in|into|as} $j",
  "$j {only|pls|please}{.|,} $t. $f $k",
  "$j obj{ect|}, $o: $k. {its |it's |}about $s",
  "$o {only|pls|}: $k. $j about $s",
  "$f $k, {thing|topic|subject} $t, $j {out|only|please}",
  "{hey|hi|yo|ok|so} {can u|could you|can you} do $s {in|as} $j with $k",
  "{can u|could u|can you|u} {make|write|do} $j {for|about} $s, $f $k?",
  "{describe|fill in|sketch} $s{,|;} $j{,|;} $f $k",
  "$j {with|w/|having} $k {about|for|on} $s{ pls| please|}",
  "$j {with|w/} {just|only|nothing but} $k{,|;| -} {its for|it's for|about|for} $s",
  "{reply|answer|respond} {in|as|with} $j{,|:} $t{;|:| -|, just} $k",
  "$t {obj|object|record|entry} {in|as} $j{,| -|:} $k",
  "$t $j{,|:| -} $k",
  "$t $j {with|w/} $k",
  "$j {obj|object|record|card} {for|of} $s\n$f: $k",
  "$t\n$j\n$f: $k",
  "$f $k\n$t{ as|,} $j",
  "$j{ pls|}\n$t\n$k",
  "{need|want} $k {for|of} $s{,|;} {as |in |}$j",
  "{need|want|send} $j{,|;} $f $k{,|;} {any $t|$s} {will do|is ok|is fine|works}",
  "{pick|take|choose} {any $t|$s}{,| and} {give|tell|return} $k as $j",
  "{any $t|$s}, {as |in |}$j, {with |}$o $k",
  "{i just need|i only need|all i need is|just need} $k for $s, {in |as |}$j",
  "{return|output|print} $j {$f|with $o} $k {for|about} $s",
  "$j please {for|about} $s. $k. {thats it|that's it|thats all|done}",
  "$k. {thats|that's|these are} {the $f|all i want}. {in |as |}$j, {for|about} $s",
  "{sample|test|dummy|fake|example} $j {for|of} $s{:| -| with} $k",
  "{fake|mock|dummy} $t {data |record |}{in|as} $j, $f $k",
  "{obj|object} in $j: $t. {has|needs|holds} $k",
  "{what about|how about} $s as $j? $f $k",
  "{one|1} $t{,| in| as} $j{,| with} $k",
  "$t{:| -} $k{,| -} $j",
  "$t{:| with| w/} $k{,|} {as|in} $j {pls|please|plz|thanks}",
  "{tell me|show me|whats|what is} {the |}$k of $s{,|} $j {only|pls|format|please}",
  "$j format: $k. {topic|subject|about} $t",
  "{write|put|save} $s {as|in} $j, {no more than|nothing but|with just|with} $k",
  "{use|with} $f $k{:| for} $s {as|in} $j",
];

/** A plain question and the one key for its short answer; $q without its question mark. */
const questions: readonly string[] = [
  "$q{?|} {as|in} $j{,|} {key|with key|field|one key|one key:|only key|single key} $k",
  "$q{?|} $j{,|} {key|field|key =|key:} $k",
  "$q{?|} {as|in} $j {with|using|under} {just |only |}$k",
  "$j {with |}{key|field} $k{:|,| -} $q{?|}",
  "{as|in} $j, {key|just the key|one key,} $k: $q{?|}",
  "{key|field} {=|is|:} $k{,|.} $j. $q{?|}",
  "$q{?|} {answer|reply} {as|in} $j{,|} {key|one key called|the key is|with one key,} $k",
  "{quick|pls|hey|ok}{ one|}, $q{?|} $j {pls|only|please}, key $k",
  "$q{?|}\n$j, {key|field}: $k",
  "{tell me in|say in|answer in|give me in|put in} $j {with|under} {the key |key |}$k: $q{?|}",
  "$q{?|} {put it|put that|stick it} {in|into} {a |}$j {obj|object} {with|under} {key |the key |}$k",
  "$q{?|} ($j, {key|only|just|one key:} $k)",
];

const limits: readonly string[] = [
  "{and |}no {other|more|extra|further} {keys|fields|stuff|things}",
  "{and |}nothing {more|else|extra|other}",
  "{only|just} $o",
  "{only|just} $e",
  "{and |}{thats|that's} {it|all}",
  "{no|without} {extras|explanation|text|comments|talk|intro}{ pls| please|}",
  "{dont|don't|do not} add {anything|more|other keys|any keys}",
  "{not a|not one} {key|field} more",
  "{skip|leave out|drop} {everything else|the rest}",
  "{and |}no text {around it|before or after|outside}",
];
const thisMany = ["", "this one", "these two", "these three", "these four"];
const those = ["", "that one", "those two", "those three", "those four"];

/** Keys in a row. Keys that contain a space are never separated by spaces alone. */
function inARow(rng: Rng, keys: readonly string[]): string {
  const spaced = keys.some((key) => key.includes(" "));
  return rng.weighted([
    [() => keys.join(spaced ? ", " : " "), 4],
    [() => keys.join(", "), 4],
    [() => keys.join(","), 2],
    [() => keys.join(" and "), 4],
    [() => andList(keys), 3],
    [() => keys.join("/"), 1],
    [() => keys.join(" + "), 1],
    [() => keys.join(" & "), 1],
    [() => keys.map((key) => `"${key}"`).join(rng.pick([", ", " and "])), 1],
  ] as const)();
}

const letters = [..."abcdefghijklmnopqrstuvwxyz"];
function casualKeys(rng: Rng, count: number): string[] {
  if (!rng.chance(0.15)) return someKeys(rng, count);
  const start = rng.pick([0, 0, rng.int(0, 22), 23]);
  return rng.chance(0.5) ? letters.slice(start, start + count) : rng.sample(letters, count);
}

const spelled = (rng: Rng) =>
  rng.weighted([
    ["json", 7],
    ["JSON", 2],
    ["Json", 1],
  ] as const);

/** Reads the wording, sometimes with a limit, a capital or a full stop. Keys at the start keep their case. */
function typed(draw: Draw, wording: string, values: Readonly<Record<string, string>>): string {
  const { rng } = draw;
  let prompt = say(rng, wording, values);
  if (rng.chance(0.3)) {
    const limit = say(rng, pickWording(draw, limits), values);
    prompt += prompt.endsWith("?") ? ` ${limit}` : `${rng.pick([", ", ", ", " - ", ". ", "; ", "\n"])}${limit}`;
  }
  if (!wording.startsWith("$k") && rng.chance(0.15)) prompt = capitalised(prompt);
  if (rng.chance(0.1) && /\w$/.test(prompt)) prompt += ".";
  return rng.chance(0.2) ? asTyped(rng, prompt) : prompt;
}

/** Number of keys -> weight. */
const counts = [
  [1, 3],
  [2, 5],
  [3, 3],
  [4, 1],
] as const;

export function casualJson(draw: Draw): Conversation {
  const { rng } = draw;
  if (rng.chance(0.18)) return casualQuestion(draw);
  const drawn = keysAndThing(draw, counts, 0.4, casualKeys, (word) => word);
  const { keys } = drawn;
  const thing = rng.chance(0.6) ? drawn.thing.toLowerCase() : drawn.thing;
  const object = filled(rng, keys);
  const prompt = typed(draw, pickWording(draw, asks), {
    j: spelled(rng),
    s: thing,
    t: thing.replace(/^an? /, ""),
    k: inARow(rng, keys),
    f: keys.length === 1 ? rng.pick(["key", "field", "one key"]) : rng.pick(["keys", "keys", "fields", "props"]),
    o: `${thisMany[keys.length]} ${keys.length === 1 ? "key" : rng.pick(["keys", "fields"])}`,
    e: rng.pick([thisMany, those])[keys.length] as string,
  });
  return exchange("json-keys", prompt, oneLine(object), { kind: "json", keys });
}

const relations = { capital: "capital", opposite: "opposite", color: "color", plural: "plural", past: "past tense" };

function casualQuestion(draw: Draw): Conversation {
  const { rng } = draw;
  let key = rng.pick(
    "answer answer result reply response value solution a ans out it text val data word output info".split(" "),
  );
  let [question, answer] = rng.pick(shortAnswers) as readonly string[] as [string, string];
  if (rng.chance(0.4)) {
    const relation = rng.pick(Object.keys(relations) as (keyof typeof relations)[]);
    const [of, value] = rng.pick(factsOf(relation));
    question = say(rng, "{what is the|whats the|what's the|the|} $r of $o", { r: relations[relation], o: of }).trim();
    answer = value;
    if (rng.chance(0.4)) key = relation;
  } else if (rng.chance(0.15)) key = anyWord(rng);
  question = question.replace(/\?$/, "");
  question = rng.chance(0.5) ? question.toLowerCase() : question.charAt(0).toLowerCase() + question.slice(1);
  const values = { j: spelled(rng), q: question, k: key, o: "this one key", e: rng.pick(["this one", "that one"]) };
  const prompt = typed(draw, pickWording(draw, questions), values);
  return exchange("json-keys", prompt, oneLine({ [key]: answer }), { kind: "json", keys: [key] });
}
