// Structured output: what the editor holds as fields of a request, and where an error belongs in its text. The server's
// messages name the place as "at position 3", "at line 2, column 6" or "at #/properties/a".
import { jsonError } from "./json-error.ts";
import { placeOfPointer } from "./json-place.ts";
import type { OutputKind } from "./settings.ts";

export function constraintFields(kind: OutputKind, text: string): Record<string, unknown> {
  switch (kind) {
    case "text":
      return {};
    case "json": {
      const schema: unknown = text.trim() === "" ? {} : JSON.parse(text);
      return { response_format: { type: "json_schema", json_schema: { name: "reply", schema } } };
    }
    case "regex":
      return { structured_outputs: { regex: text } };
    case "choice":
      return { structured_outputs: { choice: choicesIn(text) } };
    case "grammar":
      return { structured_outputs: { grammar: text } };
  }
}

function choicesIn(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

export interface Place {
  /** UTF-16 units from the beginning; null: somewhere in the text. */
  offset: number | null;
  message: string;
}

/** What is wrong before anything is sent; null if nothing is. */
export function localProblem(kind: OutputKind, text: string): Place | null {
  if (kind === "choice" && choicesIn(text).length === 0) return { offset: 0, message: "Write one choice per line." };
  if ((kind === "regex" || kind === "grammar") && text.trim() === "") return { offset: 0, message: `Write a ${kind}.` };
  if (kind !== "json" || text.trim() === "") return null;
  const error = jsonError(text);
  if (error !== null) return error;
  const schema: unknown = JSON.parse(text);
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return null;
  return { offset: 0, message: "A schema is a JSON object." };
}

/** The server's complaint about the constraint, at its place. */
export function serverProblem(kind: OutputKind, text: string, message: string): Place {
  const pointer = / at (#[^\s,]*)$/.exec(message)?.[1];
  if (pointer !== undefined && kind === "json") return { offset: placeOfPointer(text, pointer), message };
  const [, line, column] = / at line (\d+), column (\d+)$/.exec(message) ?? [];
  if (line !== undefined) return { offset: offsetOfLine(text, Number(line), Number(column)), message };
  const position = / at position (\d+)$/.exec(message)?.[1];
  return { offset: position === undefined ? null : Number(position), message };
}

/** True if an error of a request is about its constraint. */
export function isAboutConstraint(param: unknown): boolean {
  return typeof param === "string" && /^(structured_outputs|response_format)/.test(param);
}

/** Lines and columns count from 1. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

function offsetOfLine(text: string, line: number, column: number): number {
  const before = text.split("\n").slice(0, line - 1);
  return Math.min(text.length, before.reduce((sum, { length }) => sum + length + 1, 0) + column - 1);
}
