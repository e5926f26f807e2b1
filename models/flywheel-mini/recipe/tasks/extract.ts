// "Extract the fields of this sentence as JSON": sentences of a dozen everyday kinds, and many ways to ask for keys.
// The values are spans of the sentence (numbers as numbers), so every reply can be checked completely.

import { asksOf, lexicon } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { kinds, type Maker } from "./extract-kinds.ts";
import { keyList, oneLine } from "./json-keys.ts";
import { anyWord, personName } from "./made-up.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const asks: readonly string[] = [
  "{Extract|Get|Pull|Take} {the |}$k from {this sentence|the sentence|this text|the text} {as|and return} JSON: $s",
  "{Extract|Find} {the fields|the values} $k {and reply in JSON|as JSON|and write them as JSON}. {Sentence|Text}: $s",
  "$s\n{Return|Write|Give me|Output} JSON with {the |}{keys|fields} $k{.|}",
  "{Turn|Convert|Change} {this|this sentence|the text} into JSON with {the |}{keys|fields} $k: $s",
  "$s {Reply|Answer} in JSON with {the |}{keys|fields} $k.",
  '{Read|Look at} {this|the sentence}: "$s" {Give me|Return} {a JSON object with|JSON with} $k.',
  "{Text|Input}: $s\n{Keys|Fields}: $k\nJSON:",
  "{What are the|Give me the|Write the} $k in {this sentence|the text}? {Use JSON|Answer in JSON|JSON only}. $s",
  "{Fill|Make} a JSON object with {the keys |}$k from {this|the following}: $s",
  "{Please extract|I need} {the |}$k as JSON. $s",
  "{Put|Write} {the information|the data} of {this sentence|this text} into JSON ($k): $s",
  "JSON with $k for: $s",
  ...asksOf("extract"),
  ...asksOf("extract-parts"),
];

export function extract(draw: Draw): Conversation {
  const { rng } = draw;
  if (rng.chance(0.25)) return freeFields(draw);
  const kind = rng.pick(kinds);
  const fields = Object.keys(kind.fields);
  let values: Record<string, string | number>;
  do {
    values = {};
    for (const field of fields) values[field] = (kind.fields[field] as Maker)(rng);
  } while (splitOf(`extract:${Object.values(values).join("/")}`) !== draw.split);
  const sentence = say(rng, pickWording(draw, kind.sentences), values);
  const text = sentence.charAt(0).toUpperCase() + sentence.slice(1);
  if (rng.chance(0.15)) return singleField(draw, text, values, fields);
  const asked = rng.sample(fields, rng.chance(0.7) ? fields.length : rng.int(1, fields.length));
  if (rng.chance(0.6)) asked.sort((a, b) => fields.indexOf(a) - fields.indexOf(b));
  const reply: Record<string, string | number> = {};
  for (const field of asked) {
    const alias = kind.aliases?.[field];
    const key =
      alias !== undefined && rng.chance(0.25) ? rng.pick(alias.filter((name) => !asked.includes(name))) : field;
    reply[key] = values[field] as string | number;
  }
  const keys = Object.keys(reply);
  const prompt = say(rng, pickWording(draw, asks), { s: text, k: keyList(rng, keys) });
  return exchange("extract", asTyped(rng, prompt, false), oneLine(reply), { kind: "json", keys, values: reply });
}

const attributes = [
  "The $n has {the |a |}$k $v",
  "The $k of the $n is $v",
  "its $k is $v",
  "it has the $k $v",
  "the $k is $v",
];

/** Keys and values that are just words. Only the sentence says which belong together. */
function freeFields(draw: Draw): Conversation {
  const { rng } = draw;
  const noun = anyWord(rng);
  const keys = rng.sample(lexicon, rng.int(1, 4));
  const reply: Record<string, string | number> = {};
  for (const key of keys)
    reply[key] = rng.chance(0.4) ? rng.int(1, 2000) : rng.chance(0.4) ? personName(rng) : anyWord(rng);
  if (splitOf(`extract:${Object.values(reply).join("/")}`) !== draw.split) return freeFields(draw);
  const parts = keys.map((key, i) =>
    say(rng, rng.pick(i === 0 ? attributes.slice(0, 2) : attributes.slice(2)), {
      n: noun,
      k: key,
      v: reply[key] as string,
    }),
  );
  const last = parts.pop() as string;
  const sentence = `${parts.length > 0 ? `${parts.join(", ")} and ` : ""}${last}.`;
  const asked = rng.chance(0.7) ? keys : rng.sample(keys, rng.int(1, keys.length));
  const wanted: Record<string, string | number> = {};
  for (const key of asked) wanted[key] = reply[key] as string | number;
  const prompt = say(rng, pickWording(draw, asks), { s: sentence, k: keyList(rng, asked) });
  return exchange("extract", asTyped(rng, prompt, false), oneLine(wanted), {
    kind: "json",
    keys: asked,
    values: wanted,
  });
}

function singleField(
  draw: Draw,
  text: string,
  values: Record<string, string | number>,
  fields: string[],
): Conversation {
  const { rng } = draw;
  const field = rng.pick(fields);
  const value = String(values[field]);
  const prompt = say(
    rng,
    '{What is the $f in this sentence?|Find the $f.|Extract the $f.|Give me only the $f.|Which $f is mentioned?} {$s|"$s"}',
    { f: field, s: text },
  );
  return exchange("extract-one", asTyped(rng, prompt), value, { kind: "contains", any: [value] });
}
