// Fills in the slots of the short natural texts in bank/passages.txt: a text and one of its questions.

import { membersOf, passages } from "./bank.ts";
import { personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { say } from "./wording.ts";

function slots(rng: Rng): Record<string, string | number> {
  const [person, other] = twoNames(rng);
  return {
    person,
    other,
    city: placeName(rng),
    place: placeName(rng),
    number: rng.chance(0.5)
      ? rng.int(2, 90)
      : rng.pick(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"]),
    minutes: rng.int(5, 90),
    clock: rng.chance(0.5)
      ? rng.int(1, 12)
      : rng.pick(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]),
    year: rng.int(1850, 2020),
    day: rng.pick(membersOf("days of the week")),
    season: rng.pick(membersOf("seasons")),
    color: rng.pick(membersOf("colors")),
    street: `${rng.pick(["Oak", "Lake", "Mill", "Station", "Church", "River", "King", "Garden"])} Street`,
    shop: rng.pick(["bakery", "bookshop", "cafe", "flower shop", "toy shop", "restaurant", "cheese shop"]),
    food: rng.pick([
      "dark bread",
      "apple cake",
      "goat cheese",
      "lemon tart",
      "fish soup",
      "fresh pasta",
      "plum jam",
      "ice cream",
      "roast chicken",
    ]),
    foods: rng.pick(["berries", "fish", "seeds", "nuts", "leaves", "roots", "mice"]),
    animals: rng.pick(["owls", "hedgehogs", "bats", "foxes", "badgers", "geese", "goats", "sheep", "rabbits", "hens"]),
    animal: rng.pick(["monkey", "parrot", "goat", "snake", "donkey", "penguin", "wolf", "turtle", "rabbit", "horse"]),
    companion: rng.pick(["cat", "hamster", "goldfish", "pony", "canary"]),
    part: rng.pick(["sharp ears", "good nose", "large eyes", "long whiskers"]),
    club: rng.pick(["chess club", "book club", "choir", "garden club", "running group", "photo club"]),
    room: rng.pick([
      "school hall",
      "library",
      "town hall",
      "gym",
      "reading room",
      "kitchen",
      "cellar",
      "workshop",
      "museum",
    ]),
    object: rng.pick([
      "silver cup",
      "old clock",
      "painting",
      "gold ring",
      "violin",
      "diamond",
      "wooden box",
      "vase",
      "lamp",
      "map",
    ]),
    building: rng.pick([
      "museum",
      "barn",
      "bank",
      "castle",
      "stable",
      "school",
      "hospital",
      "station",
      "factory",
      "church",
    ]),
    spot: rng.pick([
      "a park",
      "the lake",
      "an old well",
      "a blue van",
      "the harbor",
      "on board",
      "at the station",
      "a small shed",
    ]),
    machine: rng.pick(["printer", "heater", "washing machine", "tractor", "elevator", "pump", "oven", "clock"]),
    piece: rng.pick(["belt", "motor", "filter", "wheel", "battery", "switch", "cable"]),
    pet: rng.pick(["Bruno", "Luna", "Rex", "Bella", "Otto", "Milo", "Frida"]),
    job: rng.pick(membersOf("jobs")),
    fear: rng.pick(["heights", "water", "dogs", "the dark", "loud noise", "spiders", "crowds"]),
    box: rng.pick(["glass box", "drawer", "tin", "safe", "basket", "cupboard"]),
    drink: rng.pick(["coffee", "green tea", "milk", "cocoa", "orange juice"]),
    show: rng.pick(["puppet show", "boat race", "dance", "magic show", "fire show"]),
    material: rng.pick(["steel", "glass", "copper", "oak wood", "marble", "plastic"]),
    vehicle: rng.pick(["train", "bus", "plane", "ferry", "tram"]),
    relative: rng.pick(["sister", "brother", "mother", "uncle", "cousin"]),
  };
}

function twoNames(rng: Rng): [string, string] {
  for (;;) {
    const pair: [string, string] = [personName(rng), personName(rng)];
    if (pair[0] !== pair[1]) return pair;
  }
}

export function naturalPassage(rng: Rng): { text: string; ask: string; answer: string } {
  const { text, questions } = rng.pick(passages);
  const values = slots(rng);
  const [ask, answer] = rng.pick(questions);
  // Sometimes uses only a part of the text, or puts a second text around it.
  const written = upperFirst(say(rng, text, values));
  const other = rng.chance(0.15) ? ` ${upperFirst(say(rng, rng.pick(passages).text, slots(rng)))}` : "";
  return { text: written + other, ask: upperFirst(say(rng, ask, values)), answer: say(rng, answer, values) };
}

const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
