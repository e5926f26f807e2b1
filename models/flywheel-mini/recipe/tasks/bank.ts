// Reads the word banks in ../bank, plain text that people can extend without touching code. Parsed once, at import.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The compiled files (dist/tasks) are one folder deeper than the sources (tasks).
const folder = [new URL("../bank/", import.meta.url), new URL("../../bank/", import.meta.url)].find((url) =>
  existsSync(fileURLToPath(url)),
);

function lines(file: string): string[] {
  if (folder === undefined) throw new Error("the recipe's bank folder is missing");
  const text = readFileSync(new URL(file, folder), "utf8");
  return text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("# "));
}

const commaList = (file: string): string[] =>
  lines(file)
    .join(", ")
    .split(/\s*,\s*/);

export interface Topic {
  /** "a dog" */
  single: string;
  /** "dogs" */
  general: string;
  /** "animal" */
  kind: string;
  definition: string;
  facts: string[];
}

export interface Intent {
  name: string;
  prompts: string[];
  replies: string[];
}

function readTopics(file: string): Topic[] {
  const topics: Topic[] = [];
  for (const line of lines(file)) {
    if (line.startsWith("@ ")) {
      const [single = "", general = "", kind = ""] = line.slice(2).split(" | ");
      topics.push({ single, general, kind, definition: "", facts: [] });
      continue;
    }
    const topic = topics[topics.length - 1];
    if (topic === undefined) throw new Error(`${file}: a sentence before the first topic`);
    if (topic.definition === "") topic.definition = line;
    else topic.facts.push(line);
  }
  return topics;
}

function readIntents(file: string): Intent[] {
  const intents: Intent[] = [];
  for (const line of lines(file)) {
    const intent = intents[intents.length - 1];
    if (line.startsWith("## ")) intents.push({ name: line.slice(3), prompts: [], replies: [] });
    else if (intent !== undefined && line.startsWith("U: ")) intent.prompts.push(line.slice(3));
    else if (intent !== undefined && line.startsWith("A: ")) intent.replies.push(line.slice(3));
    else throw new Error(`${file}: cannot read "${line}"`);
  }
  return intents;
}

/** relation -> [key, answer] pairs, in file order. */
function readFacts(file: string): Map<string, [string, string][]> {
  const facts = new Map<string, [string, string][]>();
  for (const line of lines(file)) {
    const colon = line.indexOf(":");
    const pairs = line.slice(colon + 1).split(",");
    facts.set(
      line.slice(0, colon),
      pairs.map((pair) => pair.trim().split("=") as [string, string]),
    );
  }
  return facts;
}

export const topics: readonly Topic[] = ["nature", "life", "more"].flatMap((name) => readTopics(`topics-${name}.txt`));
export const talkIntents: readonly Intent[] = readIntents("talk.txt");
/** Open questions of all kinds, each with a short answer. */
export const openIntents: readonly Intent[] = ["advice", "life", "everyday-talk", "why-and-how"].flatMap((name) =>
  readIntents(`${name}.txt`),
);
export const facts: ReadonlyMap<string, [string, string][]> = readFacts("facts.txt");
export const sets: readonly [string, string[]][] = lines("lists.txt").map((line) => {
  const colon = line.indexOf(":");
  return [
    line.slice(0, colon),
    line
      .slice(colon + 1)
      .trim()
      .split(/\s*,\s*/),
  ];
});
/** Attribute of a thing -> its possible values: words or a range of numbers. */
export const attributes: ReadonlyMap<string, string[] | { low: number; high: number }> = new Map(
  lines("attributes.txt").map((line) => {
    const [name = "", values = ""] = line.split(": ");
    const range = /^(\d+)\.\.(\d+)$/.exec(values);
    return [name, range === null ? values.split(", ") : { low: Number(range[1]), high: Number(range[2]) }];
  }),
);
export const names: readonly string[] = commaList("names.txt");
export const cities: readonly string[] = commaList("cities.txt");
export const words: readonly string[] = [...new Set(commaList("words.txt"))];
export const sentences: readonly string[] = lines("sentences.txt");

/** [question, one word, sentence] */
export const shortAnswers: readonly [string, string, string][] = lines("qa.txt").map(
  (line) => line.split(" | ") as [string, string, string],
);
/** [question, yes | no | maybe] */
export const plainChoices: readonly [string, "yes" | "no" | "maybe"][] = lines("yesno.txt").map(
  (line) => line.split(" | ") as [string, "yes" | "no" | "maybe"],
);

export function factsOf(relation: string): [string, string][] {
  const list = facts.get(relation);
  if (list === undefined) throw new Error(`no relation "${relation}" in facts.txt`);
  return list;
}

export function membersOf(set: string): string[] {
  const found = sets.find(([name]) => name === set);
  if (found === undefined) throw new Error(`no set "${set}" in lists.txt`);
  return found[1];
}

/** Some thousand English words. */
export const lexicon: readonly string[] = commaList("lexicon.txt");

/** "## name" sections of wordings; "\\n" in a line is a line break. */
function readSections(file: string): Map<string, string[]> {
  const sections = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of lines(file)) {
    if (line.startsWith("## ")) {
      current = [];
      sections.set(line.slice(3), current);
    } else current.push(line.replaceAll("\\n", "\n"));
  }
  return sections;
}

const askSections = readSections("asks.txt");
const toolSections = readSections("tool-asks.txt");
const freeToolSections = readSections("tool-asks-free.txt");

/** Wordings of a section of asks.txt. */
export function asksOf(section: string): readonly string[] {
  const found = askSections.get(section);
  if (found === undefined) throw new Error(`no section "${section}" in asks.txt`);
  return found;
}

/** More requests for a tool, if there are any. */
export const toolAsksOf = (tool: string): readonly string[] => toolSections.get(tool) ?? [];
export const freeToolAsksOf = (tool: string): readonly string[] => freeToolSections.get(tool) ?? [];

/** Texts with slots and their [question, answer] wordings. */
export const passages: readonly { text: string; questions: [string, string][] }[] = readPassages();

function readPassages(): { text: string; questions: [string, string][] }[] {
  const out: { text: string; questions: [string, string][] }[] = [];
  for (const line of lines("passages.txt")) {
    if (line.startsWith("P: ")) out.push({ text: line.slice(3), questions: [] });
    else out[out.length - 1]?.questions.push(line.slice(3).split(" | ") as [string, string]);
  }
  return out;
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** "a dog" for "dog", "an owl" for "owl". */
export const withArticle = (noun: string): string => `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;

/** "x", "x and y", "x, y and z" */
export function andList(items: readonly string[], word = "and"): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} ${word} ${items[items.length - 1]}`;
}
