// The held-out cases that scores are made of: drawn from the generator's held-out split, and written by hand in words
// the generator does not use (hand-cases*.json).

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Conversation } from "./tasks/conversation.ts";
import { drawOf, scored } from "./tasks/families.ts";
import { Rng } from "./tasks/rng.ts";

/** A file of the recipe, from the sources or from the compiled files one folder deeper. */
function recipeFile(name: string): string {
  const file = [new URL(name, import.meta.url), new URL(`../${name}`, import.meta.url)].find((url) =>
    existsSync(fileURLToPath(url)),
  );
  if (file === undefined) throw new Error(`${name} is missing in the recipe`);
  return readFileSync(file, "utf8");
}

export interface TestCase {
  id: string;
  /** Row of the score table. */
  task: string;
  source: "generated" | "hand" | "hand-hard" | "hand-first";
  /** The last message is the reference reply; it is not sent. */
  conversation: Conversation;
}

/** `perTask` held-out cases of every scored family, the same for the same seed. */
export function heldOutCases(seed: string, perTask: number): TestCase[] {
  const cases: TestCase[] = [];
  for (const [task, make] of Object.entries(scored)) {
    for (let index = 0; index < perTask; index++) {
      const made = drawOf(make, { rng: new Rng(`${seed}/case/${task}/${index}`), split: "heldout" });
      cases.push({ id: `${task}-${index}`, task, source: "generated", conversation: made });
    }
  }
  return cases;
}

/**
 * Cases written by hand, each a Conversation without the reference reply, plus its task. "hand": held-out prompts,
 * each reworded by hand after the generator was finished. "hand-hard" and "hand-first": freely written, far from
 * anything the generator says; seen during development (they helped to widen the wordings), so they are reported only.
 */
export function handCases(): TestCase[] {
  const read = (file: string, source: "hand" | "hand-hard" | "hand-first"): TestCase[] =>
    (JSON.parse(recipeFile(file)) as (Omit<Conversation, "family"> & { task: string })[]).map(
      ({ task, ...rest }, index) => ({
        id: `${source}-${task}-${index}`,
        task,
        source,
        conversation: { family: task, ...rest, messages: [...rest.messages, { role: "assistant", content: "" }] },
      }),
    );
  return [
    ...read("hand-cases.json", "hand"),
    ...read("hand-cases-hard.json", "hand-hard"),
    ...read("hand-cases-first.json", "hand-first"),
  ];
}

/** The first messages of free chats, for sample replies. */
export function chatPrompts(): string[] {
  return JSON.parse(recipeFile("chat-prompts.json")) as string[];
}
