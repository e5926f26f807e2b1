// "Extract the fields of this sentence as JSON": sentences of a dozen everyday kinds, keys asked for in many ways.
// The values in the reply are spans of the sentence (numbers as numbers), so every reply has a full check.

import { asksOf, lexicon, membersOf, names } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { keyList, oneLine } from "./json-keys.ts";
import { anyWord, personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

type Maker = (rng: Rng) => string | number;
interface Kind {
  fields: Record<string, Maker>;
  /** Other keys a person might ask the same field by. */
  aliases?: Record<string, string[]>;
  sentences: string[];
}

const person: Maker = personName;
const city: Maker = placeName;
const day: Maker = (rng) => rng.pick(membersOf("days of the week"));
const month: Maker = (rng) => rng.pick(membersOf("months"));
const clock: Maker = (rng) => `${rng.int(1, 12)}:${rng.pick(["00", "15", "30", "45"])}`;
const between =
  (low: number, high: number): Maker =>
  (rng) =>
    rng.int(low, high);
const oneOf =
  (...list: string[]): Maker =>
  (rng) =>
    rng.pick(list);
const from =
  (set: string): Maker =>
  (rng) =>
    rng.pick(membersOf(set));

export const kinds: readonly Kind[] = [
  {
    fields: { name: person, age: between(4, 90), city },
    aliases: { city: ["town", "location", "home"] },
    sentences: [
      "$name is $age years old and lives in $city.",
      "My name is $name, I am $age and I live in $city.",
      "{This is|Meet} $name from $city, who is $age years old.",
      "At $age, $name moved to $city.",
      "$name, $age, comes from $city.",
    ],
  },
  {
    fields: { name: person, job: from("jobs"), city },
    aliases: { job: ["profession", "occupation"] },
    sentences: [
      "$name works as a $job in $city.",
      "$name is a $job from $city.",
      "In $city you can meet $name, a $job.",
      "I am $name and I am a $job in $city.",
    ],
  },
  {
    fields: {
      item: oneOf(
        "lamp",
        "chair",
        "book",
        "bag",
        "clock",
        "jacket",
        "bicycle",
        "phone",
        "kettle",
        "mirror",
        "tent",
        "radio",
      ),
      price: between(2, 500),
      color: from("colors"),
    },
    aliases: { item: ["product", "object"] },
    sentences: [
      "The $color $item costs $price dollars.",
      "{I bought|She bought|We found} a $color $item for $price dollars.",
      "{For sale|Offer}: a $color $item, only $price euros.",
      "A $item in $color is $price dollars.",
    ],
  },
  {
    fields: {
      customer: person,
      item: oneOf("pizzas", "books", "chairs", "lamps", "tickets", "shirts", "cakes", "plants", "cups"),
      quantity: between(1, 40),
    },
    aliases: { customer: ["name", "buyer"], quantity: ["amount", "count", "number"] },
    sentences: [
      "$customer ordered $quantity $item.",
      "Order: $quantity $item for $customer.",
      "$customer would like to buy $quantity $item.",
      "Please send $quantity $item to $customer.",
      "We sold $quantity $item to $customer.",
    ],
  },
  {
    fields: {
      event: oneOf("meeting", "concert", "party", "lesson", "picnic", "race", "exam", "dinner", "workshop"),
      day,
      time: clock,
      place: oneOf("library", "school", "park", "town hall", "cinema", "garden", "museum", "office"),
    },
    aliases: { place: ["location", "where"], day: ["weekday"] },
    sentences: [
      "The $event is on $day at $time in the $place.",
      "{Join us|Come} for the $event at the $place on $day at $time.",
      "On $day we have a $event at $time in the $place.",
      "The $event starts at $time on $day. It takes place in the $place.",
    ],
  },
  {
    fields: { from: city, to: city, day, time: clock },
    aliases: { from: ["origin", "start"], to: ["destination", "end"] },
    sentences: [
      "The train from $from to $to leaves on $day at $time.",
      "{I want to|I will} travel from $from to $to on $day at $time.",
      "Flight from $from to $to, $day, $time.",
      "On $day at $time a bus goes from $from to $to.",
    ],
  },
  {
    fields: {
      title: oneOf(
        "The Quiet River",
        "A Long Way Home",
        "Blue Morning",
        "The Last Lamp",
        "Seven Stones",
        "The Glass Garden",
        "Night Train",
        "The Honey Thief",
      ),
      author: person,
      year: between(1900, 2024),
    },
    aliases: { author: ["writer"], title: ["book", "name"] },
    sentences: [
      '"$title" was written by $author in $year.',
      '$author wrote "$title" in $year.',
      'In $year, $author published the book "$title".',
      'The book "$title" by $author came out in $year.',
    ],
  },
  {
    fields: {
      name: oneOf("Luna", "Max", "Coco", "Rocky", "Bella", "Milo", "Daisy", "Oscar", "Pepper", "Sunny"),
      animal: oneOf("dog", "cat", "rabbit", "parrot", "horse", "hamster", "turtle"),
      age: between(1, 15),
      owner: person,
    },
    aliases: { animal: ["species", "type"] },
    sentences: [
      "$owner has a $animal called $name that is $age years old.",
      "$name is the $age year old $animal of $owner.",
      "The $animal $name belongs to $owner and is $age years old.",
      "$owner's $animal $name is $age.",
    ],
  },
  {
    fields: {
      city,
      temperature: between(-10, 40),
      weather: oneOf("sunny", "rainy", "cloudy", "windy", "snowy", "foggy"),
    },
    aliases: { weather: ["condition", "sky"], temperature: ["degrees"] },
    sentences: [
      "In $city it is $weather and $temperature degrees.",
      "The weather in $city is $weather with $temperature degrees.",
      "$city: $weather, $temperature degrees.",
      "Today $city has $temperature degrees and it is $weather.",
    ],
  },
  {
    fields: { student: person, subject: from("school subjects"), grade: oneOf("A", "B", "C", "D") },
    aliases: { student: ["name"], grade: ["mark", "result"] },
    sentences: [
      "$student got a $grade in $subject.",
      "In $subject, $student has the grade $grade.",
      "$student was given a $grade for the $subject test.",
    ],
  },
  {
    fields: {
      name: person,
      email: (rng) => `${rng.pick(names).toLowerCase()}@${rng.pick(["mail.com", "post.org", "home.net"])}`,
      phone: (rng) => `555-${rng.int(1000, 9999)}`,
    },
    sentences: [
      "You can reach $name at $email or $phone.",
      "Contact: $name, $email, phone $phone.",
      "{Write to|Ask} $name ($email) or call $phone.",
      "My name is $name. My email is $email and my phone number is $phone.",
    ],
  },
  {
    fields: {
      team: oneOf("the Lions", "the Eagles", "the Bears", "the Sharks", "the Foxes"),
      opponent: oneOf("the Wolves", "the Hawks", "the Tigers", "the Owls", "the Bulls"),
      score: (rng) => `${rng.int(0, 9)}-${rng.int(0, 9)}`,
      city,
    },
    aliases: { team: ["winner", "home"] },
    sentences: [
      "$team played against $opponent in $city and the result was $score.",
      "In $city, $team met $opponent. The score was $score.",
      "The game of $team against $opponent in $city ended $score.",
    ],
  },
  {
    fields: { name: person, sport: from("sports"), day },
    sentences: [
      "$name plays $sport every $day.",
      "Every $day $name has $sport training.",
      "On $day, $name goes to $sport.",
    ],
  },
  {
    fields: {
      dish: oneOf("tomato soup", "apple pie", "rice salad", "cheese bread", "fish stew", "lemon cake", "bean soup"),
      minutes: between(5, 120),
      people: between(1, 8),
    },
    aliases: { dish: ["meal", "recipe"], minutes: ["time", "duration"], people: ["servings"] },
    sentences: [
      "The $dish takes $minutes minutes and serves $people people.",
      "This $dish is for $people people and is ready in $minutes minutes.",
      "Cook the $dish for $minutes minutes. It is enough for $people people.",
    ],
  },
  {
    fields: {
      car: oneOf("red van", "blue truck", "old bus", "small taxi", "green tractor"),
      distance: between(3, 900),
      city,
    },
    aliases: { car: ["vehicle"], distance: ["kilometers"] },
    sentences: [
      "The $car drove $distance kilometers to $city.",
      "It took the $car all day to drive the $distance kilometers to $city.",
      "{A|The} $car is $distance kilometers away from $city.",
    ],
  },
  {
    fields: { name: person, month, day: between(1, 28) },
    sentences: [
      "$name was born on $month $day.",
      "The birthday of $name is $month $day.",
      "$name has a birthday on day $day of $month.",
    ],
  },
];

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

/** Keys and values that are just words: only the sentence tells what belongs to what. */
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
