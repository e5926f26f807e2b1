// What the bundled model is asked: held-out prompts, prompts written by hand, and the first messages of free chats. Field names
// are those of the chat API, so that a case is sent as it is.

import { readFileSync } from "node:fs";
import { fromRepository } from "./served-model.ts";

export interface Message {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content: string | null;
  reasoning?: string;
  tool_calls?: { type: "function"; id: string; function: { name: string; arguments: Record<string, unknown> } }[];
  tool_call_id?: string;
}

/** What a reply must satisfy. Answers are compared without case, outer spaces and a final full stop. */
export type Check =
  | { kind: "word"; answers: string[] }
  | { kind: "choice"; options: string[]; answer: string }
  | { kind: "json"; keys: string[]; values?: Record<string, unknown> }
  | { kind: "number"; value: number }
  | { kind: "tool"; name: string; arguments: Record<string, unknown> }
  | { kind: "contains"; any: string[] }
  | { kind: "exact"; text: string }
  | { kind: "list"; count: number };

export interface Question {
  messages: Message[];
  tools?: unknown[];
  documents?: { title: string; text: string }[];
  thinking?: boolean;
}

/**
 * Where a case comes from. "held-out": drawn by the recipe from its held-out split, 200 of each task. "reworded": such a prompt
 * reworded by hand. "free": written by hand, far from anything the recipe's generator says, with tools it does not have; no
 * target applies. All free cases but the last 120 (free-apart.json) were seen during development.
 */
export type Source = "held-out" | "reworded" | "free";

export interface TestCase extends Question {
  id: string;
  /** Row of the score table. */
  task: string;
  source: Source;
  check: Check;
}

const read = <T>(file: string): T => JSON.parse(readFileSync(fromRepository(`test/mini/${file}`), "utf8")) as T;

function casesOf(name: string, source: Source): TestCase[] {
  const cases = read<Omit<TestCase, "id" | "source">[]>(`${name}.json`);
  return cases.map((one, index) => ({ ...one, id: `${name}-${one.task}-${index}`, source }));
}

/** The first `perTask` of every task. */
export function heldOutCases(perTask: number): TestCase[] {
  const taken = new Map<string, number>();
  return casesOf("held-out", "held-out").filter(({ task }) => {
    const place = taken.get(task) ?? 0;
    taken.set(task, place + 1);
    return place < perTask;
  });
}

export function handCases(): TestCase[] {
  const free = ["free-hard", "free-first", "free-apart"].flatMap((name) => casesOf(name, "free"));
  return [...casesOf("reworded", "reworded"), ...free];
}

export const chatPrompts = (): string[] => read<string[]>("chat-prompts.json");
