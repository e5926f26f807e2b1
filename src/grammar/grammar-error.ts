// Errors that tell a client what is wrong with a constraint. Translators throw nothing else for bad input, so any other
// exception is an internal fault.

export class GrammarError extends Error {
  override name = "GrammarError";
}

/** For input that exhausts the stack, wherever that is noticed. */
export const TOO_DEEP = "the constraint is nested too deeply";

/** "…, at position 12" for one-line sources such as regexes. Positions count characters from 0. */
export function errorAt(message: string, position: number): GrammarError {
  return new GrammarError(`${message}, at position ${position}`);
}

/** "…, at line 3, column 7" for multi-line sources. */
export function errorAtLine(message: string, source: string, offset: number): GrammarError {
  const before = source.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - (before.lastIndexOf("\n") + 1) + 1;
  return new GrammarError(`${message}, at line ${line}, column ${column}`);
}

/** Shortens user text quoted in messages. */
export function excerpt(value: string, length = 40): string {
  return value.length > length ? `${value.slice(0, length)}…` : value;
}

/** Two parts of a schema exclude each other, so no value satisfies both. */
export class Contradiction extends GrammarError {}
