// The cases written by hand in words that the generator does not use (hand-cases*.json), and the first messages of free chats.
// The generator never draws these prompts for training.

import { readFileSync } from "node:fs";
import { recipePath } from "./files.ts";
import { type Conversation, promptKey, user } from "./tasks/conversation.ts";

const recipeFile = (name: string): string => readFileSync(recipePath(name), "utf8");

/**
 * Where a case comes from. "held-out": the generator's held-out split. "reworded": such a prompt reworded by hand after the
 * generator was finished. "free": written by hand, far from anything the generator says, with tools it does not have; no target
 * applies. All free cases but the last 120 (hand-cases-apart.json) were seen during development.
 */
export type Source = "held-out" | "reworded" | "free";

export interface TestCase {
  id: string;
  /** Row of the score table. */
  task: string;
  source: Source;
  /** The last message is the reference reply. It is not sent. */
  conversation: Conversation;
}

/** Cases written by hand. Each line of the files is a Conversation without the reference reply, plus its task. */
export function handCases(): TestCase[] {
  const read = (file: string, source: Source): TestCase[] =>
    (JSON.parse(recipeFile(file)) as (Omit<Conversation, "family"> & { task: string })[]).map(
      ({ task, ...rest }, index) => ({
        id: `${file.replace(".json", "")}-${task}-${index}`,
        task,
        source,
        conversation: { family: task, ...rest, messages: [...rest.messages, { role: "assistant", content: "" }] },
      }),
    );
  return [
    ...read("hand-cases.json", "reworded"),
    ...read("hand-cases-hard.json", "free"),
    ...read("hand-cases-first.json", "free"),
    ...read("hand-cases-apart.json", "free"),
  ];
}

/** The first messages of free chats, for sample replies. */
export function chatPrompts(): string[] {
  return JSON.parse(recipeFile("chat-prompts.json")) as string[];
}

const keys = new Set([
  ...handCases().map((test) => promptKey(test.conversation)),
  ...chatPrompts().map((text) => promptKey({ family: "", messages: [user(text)] })),
]);

/** Whether a key from promptKey belongs to a test prompt. */
export const isTestPrompt = (key: string): boolean => keys.has(key);
