// What is wrong with a constraint, in words its sender can act on. Every translator throws only this for bad input;
// anything else that escapes is a fault of ours.

export class GrammarError extends Error {
  override name = "GrammarError";
}

/** What exhausts the stack, wherever it is noticed. */
export const TOO_DEEP = "the constraint is nested too deeply";

/** "…, at position 12" for one-line sources such as regexes. Positions count characters from 0. */
export function errorAt(message: string, position: number): GrammarError {
  return new GrammarError(`${message}, at position ${position}`);
}

/** "…, at line 3, column 7" for sources of several lines. */
export function errorAtLine(message: string, source: string, offset: number): GrammarError {
  const before = source.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - (before.lastIndexOf("\n") + 1) + 1;
  return new GrammarError(`${message}, at line ${line}, column ${column}`);
}

/** Shortens quoted user text for messages. */
export function excerpt(value: string, length = 40): string {
  return value.length > length ? `${value.slice(0, length)}…` : value;
}

/** Two parts of a schema exclude each other: nothing satisfies both. */
export class Contradiction extends GrammarError {}
