// Names, places and phrases from a much larger supply than the word banks, so that the model must copy what it reads and cannot
// pick from a memorized list.

import { cities, lexicon, names } from "./bank.ts";
import type { Rng } from "./rng.ts";

const onsets = [
  "b",
  "br",
  "c",
  "d",
  "dr",
  "f",
  "g",
  "gr",
  "h",
  "j",
  "k",
  "l",
  "m",
  "n",
  "p",
  "r",
  "s",
  "st",
  "t",
  "tr",
  "v",
  "w",
  "z",
  "sh",
  "th",
  "",
];
const vowels = ["a", "e", "i", "o", "u", "ai", "ea", "ie", "o", "a"];
const codas = ["", "", "n", "l", "r", "s", "m", "d", "nd", "ck", "th", "x", "v"];

function invented(rng: Rng, syllables: number): string {
  let text = "";
  for (let i = 0; i < syllables; i++)
    text += rng.pick(onsets) + rng.pick(vowels) + (i === syllables - 1 ? rng.pick(codas) : "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A known first name or an invented one. */
export const personName = (rng: Rng): string => (rng.chance(0.55) ? rng.pick(names) : invented(rng, rng.int(1, 3)));

export const placeName = (rng: Rng): string => (rng.chance(0.6) ? rng.pick(cities) : invented(rng, rng.int(2, 3)));

/** Any word of the language. */
export const anyWord = (rng: Rng): string => rng.pick(lexicon);

/** `count` different words. */
export const anyWords = (rng: Rng, count: number): string[] => rng.sample(lexicon, count);

/** A few words in a row, for titles, messages and search terms. */
export const phrase = (rng: Rng): string => anyWords(rng, rng.int(2, 5)).join(" ");
