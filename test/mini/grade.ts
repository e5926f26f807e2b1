// Grades one reply against its check. `format` says whether the reply has the requested form, `pass` whether it is also right.
// The score table counts one of them, depending on the task.

import type { Check } from "./cases.ts";

export interface Reply {
  content: string;
  /** Calls that a server parsed out of the text; null if the arguments are not JSON. */
  toolCalls?: { name: string; arguments: Record<string, unknown> | null }[];
}

export interface Grade {
  format: boolean;
  pass: boolean;
}

export function grade(check: Check, reply: Reply): Grade {
  const text = reply.content.trim();
  switch (check.kind) {
    case "word": {
      const format = /^[\p{L}\p{N}'’-]+[.!]?$/u.test(text);
      return { format, pass: format && check.answers.some((answer) => same(answer, text)) };
    }
    case "choice": {
      const format = check.options.some((option) => same(option, text));
      return { format, pass: same(check.answer, text) };
    }
    case "number": {
      const numbers = text.match(/-?\d+/g) ?? [];
      return { format: numbers.length > 0, pass: Number(numbers[numbers.length - 1]) === check.value };
    }
    case "contains": {
      const format = text !== "";
      return { format, pass: format && check.any.some((part) => hasPhrase(text, part)) };
    }
    case "exact":
      return { format: text !== "", pass: text === check.text || same(text, check.text) };
    case "list": {
      const lines = text.split("\n").filter((line) => line.trim() !== "");
      const items = lines.length > 1 ? lines : text.split(",");
      return { format: items.length === check.count, pass: items.length === check.count };
    }
    case "json":
      return gradeJson(check, text);
    case "tool":
      return gradeTool(check, reply);
    default:
      return check satisfies never;
  }
}

const plain = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/[.!]+$/, "");
const same = (a: string, b: string): boolean => plain(a) === plain(b);

/** Finds the phrase as whole words: "5" is not in "15". */
function hasPhrase(text: string, phrase: string): boolean {
  const at = ` ${words(text)} `.indexOf(` ${words(phrase)} `);
  return at >= 0;
}

const words = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");

function gradeJson(check: Extract<Check, { kind: "json" }>, text: string): Grade {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { format: false, pass: false };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return { format: false, pass: false };
  const keys = Object.keys(value);
  const format = keys.length === check.keys.length && check.keys.every((key) => keys.includes(key));
  const wanted = Object.entries(check.values ?? {});
  const pass = format && wanted.every(([key, item]) => equal((value as Record<string, unknown>)[key], item));
  return { format, pass };
}

function gradeTool(check: Extract<Check, { kind: "tool" }>, reply: Reply): Grade {
  const calls = reply.toolCalls ?? callsInText(reply.content);
  const given = calls[0]?.arguments ?? null;
  if (given === null) return { format: false, pass: false };
  const keys = Object.keys(check.arguments);
  const right = calls.length === 1 && calls[0]?.name === check.name && Object.keys(given).length === keys.length;
  return { format: true, pass: right && keys.every((key) => equal(given[key], check.arguments[key])) };
}

/** Calls as the model writes them, for servers that do not parse them. */
function callsInText(text: string): { name: string; arguments: Record<string, unknown> }[] {
  const calls: { name: string; arguments: Record<string, unknown> }[] = [];
  for (const match of text.matchAll(/<tool_call>\s*(\{.*?\})\s*<\/tool_call>/gs)) {
    try {
      const parsed = JSON.parse(match[1] as string) as { name?: unknown; arguments?: unknown };
      if (typeof parsed.name === "string" && parsed.arguments !== null && typeof parsed.arguments === "object") {
        calls.push({ name: parsed.name, arguments: parsed.arguments as Record<string, unknown> });
      }
    } catch {
      // Not JSON, so not a call. The grade reports the missing call.
    }
  }
  return calls;
}

/** Compares strings without case and outer spaces, everything else by its JSON. */
function equal(a: unknown, b: unknown): boolean {
  if (typeof a === "string" && typeof b === "string") return same(a, b);
  if (typeof a === "number" || typeof b === "number") return String(a) === String(b);
  return JSON.stringify(a) === JSON.stringify(b);
}
