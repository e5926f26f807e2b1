// Keys of one or two words with values, and the many ways to name keys in a request.

import { andList, attributes, topics, withArticle } from "./bank.ts";
import { asJson, knownKeys, subjects } from "./json-keys.ts";
import { anyWord, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, splitOf } from "./split.ts";

export const pool: readonly string[] = [
  ...new Set([...attributes.keys(), ...knownKeys.filter((key) => !key.includes("_"))]),
];

const firsts =
  "main first last total top best next old new short full home daily average favorite common secret special extra official current final second public usual".split(
    " ",
  );
const pairs = [
  ..."first name,last name,full name,phone number,email address,zip code,birth date,due date,start date,end date".split(
    ",",
  ),
  ..."start time,end time,job title,page count,unit price,total price,order number,file size,screen size,home town".split(
    ",",
  ),
  ..."best friend,favorite food,favorite color,top speed,release year,fun fact,street name,house number,cook time".split(
    ",",
  ),
  ..."main character,battery life,room number,team name,user name,bank account,tax rate,head coach,opening hours".split(
    ",",
  ),
];
/** Values for the last words of pairs that no other bank has. */
const ends: Readonly<Record<string, (rng: Rng) => string | number>> = {
  number: (rng) => rng.int(10, 9999),
  code: (rng) => rng.int(10000, 99999),
  count: (rng) => rng.int(1, 400),
  fact: (rng) => rng.pick(["It is very old.", "It can float.", "Many people love it.", "It was found by chance."]),
  friend: (rng) => rng.pick(["Max", "Lucy", "Pia", "Otis"]),
  life: (rng) => rng.int(2, 48),
  hours: (rng) => rng.pick(["9 to 5", "8 to 6", "noon to ten"]),
  rate: (rng) => rng.int(1, 30),
  account: (rng) => rng.int(1000, 9999),
  town: (rng) => rng.pick(["Milford", "Oakham", "Lund", "Arles"]),
  character: (rng) => rng.pick(["Nora", "a young fox", "Captain Blue"]),
};

/** Pairs whose last word alone would mislead. */
const whole: Readonly<Record<string, (rng: Rng) => unknown>> = {
  "job title": (rng) => asJson(rng, ["job"]).job,
  "team name": (rng) => asJson(rng, ["team"]).team,
  "email address": (rng) => asJson(rng, ["email"]).email,
  "street name": (rng) => rng.pick(["Oak Street", "Mill Road", "Park Lane", "Lake Avenue"]),
  "user name": (rng) => rng.pick(["greenfox", "star7", "littlebird", "sunny_day"]),
  "cook time": (rng) => rng.int(5, 120),
  "screen size": (rng) => rng.int(4, 60),
  "file size": (rng) => rng.int(1, 900),
  "phone number": (rng) => asJson(rng, ["phone"]).phone,
};

/** Things with fitting attributes. */
const suited: readonly (readonly [string, string])[] = [
  [
    "a book|a novel|a storybook",
    "title author pages genre year publisher isbn chapters hero plot ending language price",
  ],
  ["a movie|a film|a play", "title director year genre duration actor rating award scene plot language"],
  ["a song|an album|a melody", "title singer album duration genre year lyrics band tempo chorus"],
  ["a person|a neighbor|a friend", "name age city job hobby birthday nickname hair eyes talent dream fear email phone"],
  ["an employee|a worker|a nurse", "name salary department role skill experience shift email employer"],
  ["a pet|a dog|a cat|a hamster", "name age breed owner color weight fur tail food"],
  ["an animal|a bird|a fish", "name habitat diet lifespan legs wings weight sound color"],
  ["a recipe|a meal|a soup|a cake", "dish ingredients calories servings difficulty duration spice cook taste"],
  ["a city|a town|a village", "name country population mayor river landmark climate area language"],
  ["a country|an island", "name capital language currency population flag area climate"],
  ["a product|a lamp|a chair", "name brand price color weight material stock category warranty supplier"],
  ["a car|a van|a bus", "brand model year color engine seats speed mileage owner plate"],
  ["a house|a flat|a cabin", "address rooms rent floor garden windows owner area price"],
  ["a trip|a holiday|a tour", "destination duration price hotel departure luggage guide date"],
  ["a train ride|a flight", "departure arrival platform seat passenger gate price"],
  ["an order|a purchase", "id product quantity price date status buyer delivery discount"],
  ["a phone|a tablet|a laptop", "brand model battery screen storage price color year"],
  ["a meeting|a party|a concert", "date time venue host guest topic theme duration"],
  ["a team|a club", "name coach captain members stadium motto sport"],
  ["a match|a race|a game", "winner score opponent date referee players prize"],
  ["a plant|a tree|a flower", "name color height soil sunlight bloom season leaf petals"],
  ["a planet|a moon", "name size moons gravity orbit temperature color"],
  ["a hero|a wizard|a dragon|a knight", "name weapon magic strength weakness enemy home treasure age"],
  ["an email|a letter", "sender recipient subject message date greeting signature attachment"],
  ["a task|a job to do|a ticket", "title priority deadline owner status category step"],
  ["a student|a pupil", "name age subject level score hobby email"],
  ["a patient|a visit to the doctor", "name age symptom medicine doctor dosage allergy"],
  ["a news story|an article", "headline reporter section date summary topic"],
  ["a user|an account", "username email password id active language role"],
  ["a game character|a pirate", "name level weapon talent enemy treasure nickname"],
];
/** A thing and some fitting keys. */
export function suitedKeys(rng: Rng, count: number): { thing: string; keys: string[] } {
  const [things, keys] = rng.pick(suited);
  return { thing: rng.pick(things.split("|")), keys: rng.sample(keys.split(" "), count) };
}

export type Joint = (words: readonly string[]) => string;
const camel: Joint = ([first = "", ...rest]) =>
  first + rest.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
/** One way to join words for a whole conversation: due_date, dueDate, "due date", now and then due-date. */
export const anyJoint = (rng: Rng): Joint =>
  rng.weighted<Joint>([
    [(words) => words.join("_"), 8],
    [camel, 6],
    [(words) => words.join(" "), 6],
    [(words) => words.join("-"), 1],
  ]);

/** Some keys, few of them made of two words. */
export function someKeys(rng: Rng, count: number): string[] {
  const joint = anyJoint(rng);
  const twoWords = rng.chance(0.35) ? 0.6 : 0.05;
  const one = () => {
    if (rng.chance(twoWords))
      return joint(rng.chance(0.6) ? rng.pick(pairs).split(" ") : [rng.pick(firsts), rng.pick(pool)]);
    return rng.chance(0.8) ? rng.pick(pool) : anyWord(rng);
  };
  return [...new Set(Array.from({ length: count }, one))];
}

/** Values for keys. A key of two words is looked up by its last word. */
export function filled(rng: Rng, keys: readonly string[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const key of keys) {
    const last = key.replace(/^.*[_ -]/, "").replace(/^[a-z]+(?=[A-Z])/, "");
    const head = last.charAt(0).toLowerCase() + last.slice(1);
    const spaced = key.replace(/[_-]/g, " ").replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    const make = whole[spaced] ?? (head === key ? undefined : ends[head]);
    out[key] = make === undefined ? asJson(rng, [head])[head] : make(rng);
  }
  return out;
}

/** The keys after "an apple's" or after "the". */
export function bare(rng: Rng, keys: readonly string[]): string {
  const [first, ...rest] = keys as [string, ...string[]];
  return rng.pick([
    () => andList(keys),
    () => andList(keys),
    () => andList(keys),
    () => andList(keys.map((key) => `"${key}"`)),
    () => andList(keys.map((key) => `'${key}'`)),
    () => andList(keys.map((key) => `\`${key}\``)),
    () => keys.join(" plus "),
    () => keys.join(" / "),
    () => keys.join("/"),
    () => keys.join(" + "),
    () => keys.join(" & "),
    () => keys.join(" and "),
    () => keys.join(", "),
    () => keys.join(","),
    () => (rest.length === 0 ? first : `${first} as well as ${andList(rest)}`),
    () => (rest.length === 0 ? first : `${first} along with ${andList(rest)}`),
  ])();
}

/** The type of a value, as people note it after a key. */
function kindOf(rng: Rng, value: unknown): string {
  if (typeof value === "number") return rng.pick(["number", "integer", "a number"]);
  if (typeof value === "string") return rng.pick(["text", "string", "short", "a few words"]);
  if (typeof value === "boolean") return rng.pick(["true or false", "boolean"]);
  return value === undefined ? rng.pick(["required", "short"]) : "list";
}

/** The keys as the object of "with" or "include"; `object` tells the kinds of the values. */
export function named(rng: Rng, keys: readonly string[], object: Readonly<Record<string, unknown>> = {}): string {
  const each = (make: (key: string) => string) => andList(keys.map(make));
  const noun = rng.pick(["fields", "properties", "attributes", "keys", "entries", "columns", "slots"]);
  return rng.pick([
    () => bare(rng, keys),
    () => bare(rng, keys),
    () => each((key) => `the ${key}`),
    () => each((key) => `its ${key}`),
    () => `its ${andList(keys)}`,
    () => each(withArticle),
    () => each((key) => `${withArticle(key)} field`),
    () => `first ${keys.join(", then ")}`,
    () => each((key) => `a key called ${key}`),
    () => each((key) => `one field for the ${key}`),
    () => (keys.length === 2 ? `both ${andList(keys)}` : andList(keys)),
    () => keys.map((key) => `${key} (${kindOf(rng, object[key])})`).join(", "),
    () => `the ${noun} ${bare(rng, keys)}`,
    () => `the ${noun} ${bare(rng, keys)}`,
    () => `${noun} for ${andList(keys)}`,
    () => `${noun} named ${andList(keys)}`,
    () => `nothing but ${andList(keys)}`,
    () => each((key) => `a slot for the ${key}`),
    () => (keys.length === 1 ? `a single key, ${keys[0]}` : `these ${noun}: ${bare(rng, keys)}`),
  ])();
}

/** The keys as a separate list. */
export function listed(rng: Rng, keys: readonly string[], object: Readonly<Record<string, unknown>> = {}): string {
  return rng.pick([
    () => keys.map((key) => `\n- ${key}`).join(""),
    () => keys.map((key) => `\n- ${key}`).join(""),
    () => keys.map((key) => `\n* ${key}`).join(""),
    () => keys.map((key) => `\n${key}`).join(""),
    () => keys.map((key) => `\n- "${key}"`).join(""),
    () => keys.map((key) => `\n- ${key} (${kindOf(rng, object[key])})`).join(""),
    () => keys.map((key, i) => `\n${i + 1}. ${key}`).join(""),
    () => ` {${keys.map((key) => `"${key}": ...`).join(", ")}}`,
    () => ` {${keys.map((key) => `"${key}": "..."`).join(", ")}}`,
    () => ` ${keys.map((key) => `<${key}>`).join(" ")}`,
    () => ` ${keys.join(", ")}`,
    () => ` ${keys.join(" | ")}`,
    () => ` ${keys.join("; ")}`,
    () => ` [${keys.join(", ")}]`,
  ])();
}

/**
 * The keys to ask for, on the draw's side, and the thing they describe. A share of `suited` draws gets keys that fit the thing,
 * the rest gets `others`. `noun` turns any word into a thing.
 */
export function keysAndThing(
  { rng, split }: Draw,
  counts: readonly (readonly [number, number])[],
  suited: number,
  others: (rng: Rng, count: number) => string[],
  noun: (word: string) => string,
): { keys: string[]; thing: string } {
  let keys: string[];
  let thing: string | undefined;
  do {
    const count = rng.weighted(counts);
    const fitting = rng.chance(suited) ? suitedKeys(rng, count) : undefined;
    thing = fitting?.thing;
    keys = fitting?.keys ?? others(rng, count);
  } while (splitOf(`json:${[...keys].sort().join()}`) !== split);
  thing ??= rng.weighted([
    [() => rng.pick(topics).single, 5],
    [() => rng.pick(subjects.filter((one) => /^an? /.test(one))), 3],
    [() => noun(anyWord(rng)), 1],
    [() => personName(rng), 1],
    [() => `my ${anyWord(rng)}`, 1],
  ])();
  return { keys, thing };
}
