// "Reply in JSON with keys ...": made-up records, answers wrapped in JSON, and arbitrary keys that must be copied.
// The reply is one line of JSON with the requested keys in the requested order, and nothing else.

import {
  andList,
  asksOf,
  attributes,
  factsOf,
  lexicon,
  membersOf,
  names,
  shortAnswers,
  topics,
  words,
} from "./bank.ts";
import { type Conversation, exchange, system } from "./conversation.ts";
import { anyWord, personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

type Value = string | number | boolean | string[];

const email = (rng: Rng) => `${rng.pick(names).toLowerCase()}@${rng.pick(["mail", "post", "home", "work"])}.com`;

/** Values for well-known keys. */
const makers: Record<string, (rng: Rng) => Value> = {
  name: personName,
  age: (rng) => rng.int(5, 80),
  city: placeName,
  country: (rng) => rng.pick(membersOf("countries")),
  color: (rng) => rng.pick(membersOf("colors")),
  animal: (rng) => rng.pick(membersOf("animals")),
  food: (rng) => rng.pick(membersOf("foods")),
  price: (rng) => rng.int(1, 200),
  title: (rng) =>
    `The ${rng.pick(["Old", "Red", "Quiet", "Lost", "Golden"])} ${rng.pick(["House", "River", "Garden", "Clock", "Island"])}`,
  author: (rng) => rng.pick(names),
  year: (rng) => rng.int(1950, 2024),
  email,
  phone: (rng) => `555-${rng.int(1000, 9999)}`,
  job: (rng) => rng.pick(membersOf("jobs")),
  hobby: (rng) => rng.pick(membersOf("hobbies")),
  rating: (rng) => rng.int(1, 5),
  available: (rng) => rng.chance(0.5),
  quantity: (rng) => rng.int(1, 30),
  weight: (rng) => rng.int(1, 90),
  height: (rng) => rng.int(100, 200),
  day: (rng) => rng.pick(membersOf("days of the week")),
  month: (rng) => rng.pick(membersOf("months")),
  time: (rng) => `${rng.int(1, 12)}:${rng.pick(["00", "15", "30", "45"])}`,
  language: (rng) => rng.pick(membersOf("languages")),
  temperature: (rng) => rng.int(-5, 35),
  tags: (rng) => rng.sample(words, 2),
  team: (rng) => `${rng.pick(["Red", "Blue", "Green"])} ${rng.pick(["Lions", "Eagles", "Bears"])}`,
  score: (rng) => rng.int(0, 10),
  subject: (rng) => rng.pick(membersOf("school subjects")),
  fruit: (rng) => rng.pick(membersOf("fruits")),
  drink: (rng) => rng.pick(membersOf("drinks")),
  sport: (rng) => rng.pick(membersOf("sports")),
  id: (rng) => rng.int(1, 999),
  active: (rng) => rng.chance(0.5),
  first_name: (rng) => rng.pick(names),
  last_name: (rng) => rng.pick(["Baker", "Stone", "Rivers", "Hill", "Woods", "Brown", "Fields"]),
  street: (rng) => `${rng.int(1, 99)} ${rng.pick(["Oak", "Lake", "Park", "High"])} Street`,
  product: (rng) => rng.pick(["lamp", "chair", "book", "phone", "bag", "watch"]),
  category: (rng) => rng.pick(["home", "books", "sport", "music", "food"]),
  status: (rng) => rng.pick(["open", "closed", "done", "new"]),
  message: (rng) => rng.pick(["Hello!", "Have a nice day.", "See you soon.", "Thank you."]),
  summary: (rng) => rng.pick(["A short text.", "A calm day at home.", "A trip to the sea."]),
  mood: (rng) => rng.pick(["happy", "calm", "tired", "sad"]),
  weather: (rng) => rng.pick(["sunny", "rainy", "cloudy", "windy"]),
  pet: (rng) => rng.pick(["dog", "cat", "rabbit", "parrot"]),
  size: (rng) => rng.pick(["small", "medium", "large"]),
  date: (rng) => `2024-0${rng.int(1, 9)}-${rng.int(10, 28)}`,
  currency: (rng) => rng.pick(["euro", "dollar", "pound", "yen"]),
  ingredients: (rng) => rng.sample(membersOf("foods"), 3),
  capital: placeName,
  planet: (rng) => rng.pick(membersOf("planets")),
  instrument: (rng) => rng.pick(membersOf("musical instruments")),
  flower: (rng) => rng.pick(membersOf("flowers")),
  reason: (rng) => rng.pick(["It is simple.", "It is useful.", "It is new."]),
};
export const knownKeys: readonly string[] = Object.keys(makers);

export const subjects: readonly string[] = [
  "a person",
  "a customer",
  "a student",
  "a book",
  "a product",
  "a city",
  "a pet",
  "a meal",
  "a movie",
  "a game",
  "an animal",
  "an event",
  "a friend",
  "a trip",
  "a user",
  "a song",
  "an order",
  "a car",
  "a house",
  "yourself",
  "something",
  "anything you like",
  "a dragon",
  "a shop",
  "a plant",
  "a teacher",
  "a king",
  "a day",
];

/** $s what about, $k the keys. */
const asks: readonly string[] = [
  "{Describe|Invent|Make up|Create|Think of} $s {and reply|and answer|and respond} {in JSON|as JSON|with JSON} {with|using|that has} {the |}{keys|fields} $k{.|}",
  "{Reply|Answer|Respond} {in|with} JSON {with|using} {the |}{keys|fields|properties} $k{.|}[ Topic: $s.]",
  "{Give me|Return|Write|Produce|Generate|Output} {a|one} JSON {object|record} {for|about|that describes} $s with {the |}{keys|fields|properties} $k{.|}",
  "{Return|Output|Send} only JSON with {the |}{keys|fields} $k[ for $s]{.|}",
  "{I need|I want|Please give me} JSON {for|about} $s. {Keys|Fields|The keys are|Use these keys}: $k{.|}",
  "JSON {please|only}[, about $s]. {Keys|Fields}: $k{.|}",
  "{Tell me|Say something} about $s {as|in} {JSON|a JSON object} with {keys|the keys|fields} $k{.|}",
  "{Fill in|Complete} a JSON object {for|about} $s. It {must|should} {have|contain} {the keys |the fields |}$k{.|}",
  "{Format|Write} your {answer|reply} as {JSON|a JSON object} {with|having|containing} $k{.| as keys.} {The topic is|Talk about|Describe} $s.",
  "$upper in JSON, {keys|fields} $k{.|}",
  "{Make|Build|Construct} a JSON object with {exactly |}these keys: $k.[ It is about $s.]",
  "{Answer|Reply} {in JSON format|in valid JSON|with valid JSON|using JSON}. {The object has|Include|Use} {the keys |}$k.[ Subject: $s.]",
  "{Could you|Can you|Please} {write|give|send} {me |}$s as JSON with $k?",
  ...asksOf("json"),
  ...asksOf("json-parts"),
  ...asksOf("json-parts"),
];

/** The many ways to write a list of keys. */
export function keyList(rng: Rng, keys: readonly string[]): string {
  const quoted = keys.map((key) => `"${key}"`);
  const ticked = keys.map((key) => `\`${key}\``);
  return rng.pick([
    andList(keys),
    andList(keys),
    andList(quoted),
    quoted.join(", "),
    keys.join(", "),
    andList(ticked),
    `(${keys.join(", ")})`,
    keys.join(" and "),
  ]);
}

/** A value for every key: a fitting one for known keys, any word or number for others. */
export function asJson(rng: Rng, keys: readonly string[]): Record<string, Value> {
  const out: Record<string, Value> = {};
  for (const key of keys) out[key] = valueFor(rng, key);
  return out;
}

function valueFor(rng: Rng, key: string): Value {
  const make = makers[key];
  if (make !== undefined) return make(rng);
  const known = attributes.get(key);
  if (known !== undefined) return Array.isArray(known) ? rng.pick(known) : rng.int(known.low, known.high);
  return rng.chance(0.3) ? rng.int(1, 999) : anyWord(rng);
}

/** JSON on one line with ", " and ": ", as the chat template writes it. */
export function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`)
    .join(", ")}}`;
}

export function jsonKeys(draw: Draw): Conversation {
  const { rng } = draw;
  if (rng.chance(0.25)) return jsonAnswer(draw);
  let keys: string[];
  do {
    const pool = rng.chance(0.45) ? lexicon : knownKeys;
    keys = rng.sample(
      pool,
      rng.weighted([
        [1, 1],
        [2, 5],
        [3, 5],
        [4, 2],
      ]),
    );
    if (rng.chance(0.2)) keys[rng.int(0, keys.length - 1)] = anyWord(rng);
    if (rng.chance(0.06)) keys[0] = `${anyWord(rng)}_${anyWord(rng)}`;
    keys = [...new Set(keys)];
  } while (splitOf(`json:${[...keys].sort().join()}`) !== draw.split);
  const subject = rng.chance(0.75) ? rng.pick(subjects) : rng.pick(topics).single;
  const values = { s: subject, k: keyList(rng, keys), upper: subject.charAt(0).toUpperCase() + subject.slice(1) };
  const prompt = asTyped(rng, say(rng, pickWording(draw, asks), values));
  const conversation = exchange("json-keys", prompt, oneLine(asJson(rng, keys)), { kind: "json", keys });
  if (rng.chance(0.08))
    conversation.messages.unshift(system(say(rng, "{Always reply|Reply|You answer} in JSON{.| only.}")));
  return conversation;
}

const wraps: readonly string[] = [
  "$q {Reply|Answer|Respond} in JSON with the key{s|} $k.",
  "$q {Give|Return|Write} the {answer|result} as JSON with {the |}{key|keys|field|fields} $k{.|}",
  "{Answer|Reply} as JSON with {the |}{keys|key} $k: $q",
  "$q {JSON only|Only JSON}, {key|keys|fields}: $k.",
  "$q {Put|Write} {it|the answer} {in|into} a JSON object {with|that has} $k.",
  "In JSON with $k: $q",
  ...asksOf("json-wrap"),
  ...asksOf("json-wrap-parts"),
];

/** A small question whose answer goes into JSON: {"country": "France", "capital": "Paris"}. */
function jsonAnswer(draw: Draw): Conversation {
  const { rng } = draw;
  if (rng.chance(0.4)) return wrappedAnswer(draw);
  const relation = rng.pick(["capital", "opposite", "color", "plural", "past"]);
  const [key, value] = rng.pick(factsOf(relation));
  const inputKey = { capital: "country", opposite: "word", color: "thing", plural: "singular", past: "verb" }[
    relation
  ] as string;
  const label = relation === "past" ? "past tense" : relation;
  const outputKey = rng.pick([relation, "answer", "result"]);
  const both = rng.chance(0.5);
  const reply = both ? { [inputKey]: key, [outputKey]: value } : { [outputKey]: value };
  const values = { q: `What is the ${label} of ${key}?`, k: keyList(rng, Object.keys(reply)) };
  const prompt = asTyped(rng, say(rng, pickWording(draw, wraps), values));
  return exchange("json-keys", prompt, oneLine(reply), { kind: "json", keys: Object.keys(reply) });
}

function wrappedAnswer(draw: Draw): Conversation {
  const { rng } = draw;
  const [question, word, sentence] = rng.pick(shortAnswers);
  const key = rng.pick(["answer", "result", "reply", "response", "value", "solution"]);
  const reply: Record<string, Value> = {};
  if (rng.chance(0.35)) reply.question = question;
  reply[key] = rng.chance(0.6) ? word : sentence;
  if (rng.chance(0.25)) reply.confidence = rng.pick(["high", "low"]);
  const keys = Object.keys(reply);
  const prompt = asTyped(rng, say(rng, pickWording(draw, wraps), { q: question, k: keyList(rng, keys) }));
  return exchange("json-keys", prompt, oneLine(reply), { kind: "json", keys });
}
