// Parameters of the tools in tool-bank-town.ts and tool-bank-work.ts.

import { lexicon, membersOf } from "./bank.ts";
import { anyWord, personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { choice, int, type ParameterKind, str, type ToolKind } from "./tool-parts.ts";

/** Names separated by spaces; the wordings use the first. `results` are separated by "|". */
export function tool(
  names: string,
  about: string,
  parameters: Record<string, ParameterKind>,
  results: string,
  reply: string,
): ToolKind {
  const all = results.split("|");
  return { names: names.split(" "), about, parameters, asks: [], result: (rng) => rng.pick(all), returns: "$r", reply };
}
export const among = (keys: string, about: string, values: string): ParameterKind => {
  const all = values.split(", ");
  return str(keys, about, (rng) => rng.pick(all));
};
export const spoken = (parameter: ParameterKind, said: Record<string, readonly string[]>): ParameterKind => ({
  ...parameter,
  said,
});

export const months = membersOf("months");
const weekdays = membersOf("days of the week");
export const date = str("date day when", "the date", (rng) =>
  rng.pick([
    () => `${rng.pick(months)} ${rng.int(1, 28)}`,
    () => `${rng.int(1, 28)} ${rng.pick(months)}`,
    () => `2025-${rng.int(10, 12)}-${rng.int(10, 28)}`,
    () => `next ${rng.pick(weekdays)}`,
    () => rng.pick(weekdays),
    () => rng.pick(["tomorrow", "today", "December 24"]),
  ])(),
);
export const hour = str("time at start_time hour", "the time", (rng) =>
  rng.pick([
    () => `${rng.int(1, 12)} ${rng.pick(["am", "pm"])}`,
    () => `${rng.int(7, 23)}:${rng.pick(["00", "10", "20", "30", "45"])}`,
    () => `${rng.int(1, 12)}:30 ${rng.pick(["am", "pm"])}`,
    () => rng.pick(["noon", "midnight"]),
  ])(),
);
export const letters = "ABCDEFGHKLMNPRSTUVWXZ";
export const someLetters = (rng: Rng, count: number) =>
  Array.from({ length: count }, () => rng.pick([...letters])).join("");
export const fileEnds = ["pdf", "txt", "csv", "png", "docx", "jpg", "md", "zip"];
export const fileName = (rng: Rng) =>
  rng.pick([
    () => `${anyWord(rng)}.${rng.pick(fileEnds)}`,
    () => `${anyWord(rng)}_${rng.int(1, 99)}.${rng.pick(fileEnds)}`,
    () => `${anyWord(rng)}-${anyWord(rng)}.${rng.pick(fileEnds)}`,
  ])();
export const file = str("file filename path file_name", "name of the file", fileName);
export const amount = int("amount value sum", "the amount", 2, 3000);
export const someone = (keys: string, about: string): ParameterKind =>
  str(keys, about, (rng) => (rng.chance(0.4) ? `${personName(rng)} ${personName(rng)}` : personName(rng)));
export const bookTitle = str("title book book_title name", "the title", (rng) =>
  rng.chance(0.6)
    ? rng.pick(["The Salt Road", "A House of Paper", "Winter Birds", "The Clockmaker", "Small Rivers", "North of Here"])
    : `The ${rng.pick(lexicon)} ${rng.pick(lexicon)}`,
);
export const priority = spoken(choice("priority urgency level", "how urgent it is", ["low", "medium", "high"]), {
  low: ["low priority", "not so important", "not urgent"],
  medium: ["medium priority", "normal priority"],
  high: ["high priority", "very urgent", "really important"],
});
export const size = spoken(choice("size cup_size format", "the size", ["small", "medium", "large"]), {
  small: ["small", "little", "tiny"],
  medium: ["medium", "middle-sized", "normal"],
  large: ["large", "big", "huge"],
});
export const from = str("from origin start", "where to start", placeName);
export const to = str("to destination end", "where to go", placeName);
export const store = str("store city branch", "the city", placeName);
export const kindOfCar = spoken(choice("type car_type category", "kind of car", ["small", "family", "electric"]), {
  small: ["small", "little", "tiny"],
  family: ["family", "family-sized"],
  electric: ["electric", "battery-powered"],
});
