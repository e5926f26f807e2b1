// Where generated JSON may contain whitespace, and how true, false and null are spelled.

import { codePointsOf, subtractSets } from "../code-points.ts";
import { choice, type Expression, empty, optional, repeat, sequence, text } from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { parseRegex } from "../syntax/regex.ts";

export interface JsonLayout {
  readonly afterOpen: Expression;
  readonly beforeClose: Expression;
  readonly beforeComma: Expression;
  readonly afterComma: Expression;
  readonly beforeColon: Expression;
  readonly afterColon: Expression;
  /** Spelling of true, false and null. */
  readonly words: { readonly true: string; readonly false: string; readonly null: string };
}

export interface JsonLayoutOptions {
  compact: boolean;
  whitespacePattern: string | null;
}

const noSpace: JsonLayout = {
  afterOpen: empty,
  beforeClose: empty,
  beforeComma: empty,
  afterComma: empty,
  beforeColon: empty,
  afterColon: empty,
  words: { true: "true", false: "false", null: "null" },
};

/**
 * By default, allows the usual layouts (compact, one space, indented lines) but never an endless run of whitespace.
 * A pattern replaces them and applies wherever JSON allows whitespace.
 */
export function jsonLayout(options: JsonLayoutOptions): JsonLayout {
  if (options.compact) return noSpace;
  if (options.whitespacePattern !== null) {
    const space = whitespacePattern(options.whitespacePattern);
    return {
      ...noSpace,
      afterOpen: space,
      beforeClose: space,
      beforeComma: space,
      afterComma: space,
      beforeColon: space,
      afterColon: space,
    };
  }
  const indented = sequence(text("\n"), choice(repeat(text(" "), 0, 24), repeat(text("\t"), 1, 8)));
  const space = optional(choice(text(" "), indented));
  return { ...noSpace, afterOpen: space, beforeClose: space, afterComma: space, afterColon: optional(text(" ")) };
}

function whitespacePattern(pattern: string): Expression {
  let parsed: Expression;
  try {
    parsed = parseRegex(pattern, "part");
  } catch (error) {
    if (error instanceof GrammarError) throw new GrammarError(`whitespace_pattern: ${error.message}`);
    throw error;
  }
  const allowed = codePointsOf(" \t\n\r");
  const onlySpace = (expression: Expression): boolean => {
    switch (expression.kind) {
      case "set":
        return subtractSets(expression.set, allowed).length === 0;
      case "texts":
        return expression.texts.every((value) => subtractSets(codePointsOf(value), allowed).length === 0);
      case "sequence":
        return expression.parts.every(onlySpace);
      case "choice":
        return expression.options.every(onlySpace);
      case "repeat":
        return onlySpace(expression.body);
      default:
        return false;
    }
  };
  if (!onlySpace(parsed)) {
    throw new GrammarError("whitespace_pattern may only match space, tab, line feed and carriage return");
  }
  return parsed;
}
