// The parts of a tool in the bank, and the parameters that many tools share.

import { membersOf } from "./bank.ts";
import { anyWord, personName, phrase, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";

export interface ParameterKind {
  /** Possible spellings of the parameter; one is drawn per conversation. */
  keys: string[];
  type: "string" | "integer" | "number" | "boolean";
  about: string;
  make(rng: Rng): string | number;
  enum?: string[];
  /** Other words for a value of the enum, as people say it: "urgent" for "high". */
  said?: Readonly<Record<string, readonly string[]>>;
}

export interface ToolKind {
  names: string[];
  about: string;
  /** Variable name in the wordings -> parameter. */
  parameters: Record<string, ParameterKind>;
  asks: string[];
  /** What the tool returns and the reply made from it; $r is the random part, drawn by `result`. */
  result(rng: Rng): string;
  returns: string;
  reply: string;
}

export const str = (keys: string, about: string, make: (rng: Rng) => string): ParameterKind => ({
  keys: keys.split(" "),
  type: "string",
  about,
  make,
});
export const int = (keys: string, about: string, low: number, high: number): ParameterKind => ({
  keys: keys.split(" "),
  type: "integer",
  about,
  make: (rng) => rng.int(low, high),
});
export const choice = (keys: string, about: string, options: string[]): ParameterKind => ({
  keys: keys.split(" "),
  type: "string",
  about,
  make: (rng) => rng.pick(options),
  enum: options,
});

export const city = str("city location place town", "the city", placeName);
export const person = str("name person contact to recipient", "the name of the person", personName);
export const clock = (rng: Rng) => `${rng.int(1, 12)}:${rng.pick(["00", "15", "30", "45"])}`;
export const room = str("room place area", "the room", (rng) =>
  rng.pick(["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "living room"]),
);
export const day = str("day date when", "the day", (rng) => rng.pick(membersOf("days of the week")));
export const word = str("word term text", "the word", anyWord);
export const item = str("item product article thing", "the item", (rng) =>
  rng.chance(0.4)
    ? anyWord(rng)
    : rng.pick([
        "milk",
        "bread",
        "eggs",
        "rice",
        "apples",
        "soap",
        "coffee",
        "cheese",
        "paper",
        "batteries",
        "tea",
        "flour",
      ]),
);
export const title = str("title name movie", "the title", (rng) =>
  rng.pick(["The Quiet River", "Blue Morning", "Night Train", "Seven Stones", "The Glass Garden", "The Last Lamp"]),
);
export const message = str("message text body content", "what to say", (rng) =>
  rng.chance(0.5)
    ? phrase(rng)
    : rng.pick([
        "I am late",
        "see you soon",
        "happy birthday",
        "the food is ready",
        "call me back",
        "thank you for the gift",
        "good luck",
        "I am at home",
      ]),
);
export const topic = str("query q topic search", "what to look for", (rng) =>
  rng.chance(0.4)
    ? phrase(rng)
    : rng.pick([
        "cheap flights",
        "apple pie recipes",
        "history of Rome",
        "chess rules",
        "how to tie a tie",
        "weather on Mars",
        "used bicycles",
        "train times",
        "dog training",
        "healthy soups",
      ]),
);
