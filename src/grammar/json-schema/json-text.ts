// The building blocks of JSON text in one layout: strings, literals, and the punctuation of objects and arrays.
import { ANY_CODE_POINT, codePointsOf, ESCAPED_IN_JSON, subtractSets } from "../code-points.ts";
import {
  charSet,
  choice,
  type Expression,
  empty,
  type GrammarBuilder,
  optional,
  repeat,
  sequence,
  text,
  texts,
} from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { parseRegex } from "../syntax/regex.ts";
import type { JsonValue } from "./keywords.ts";
import { anyNumber } from "./numbers/integers.ts";

// Where generated JSON may contain whitespace, and how true, false and null are spelled.

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

/** Rules for values, strings and punctuation in one layout. */
export class JsonText {
  readonly builder: GrammarBuilder;
  readonly layout: JsonLayout;

  constructor(builder: GrammarBuilder, layout: JsonLayout) {
    this.builder = builder;
    // Whitespace occurs between all members. A shared rule stores it once.
    const shared = (name: string, space: Expression): Expression =>
      space === empty ? empty : builder.named(`json space ${name}`, () => space);
    this.layout = {
      words: layout.words,
      afterOpen: shared("after open", layout.afterOpen),
      beforeClose: shared("before close", layout.beforeClose),
      beforeComma: shared("before comma", layout.beforeComma),
      afterComma: shared("after comma", layout.afterComma),
      beforeColon: shared("before colon", layout.beforeColon),
      afterColon: shared("after colon", layout.afterColon),
    };
  }

  /** One character of a string: raw, or as any JSON escape. A lone surrogate is not a character. */
  get character(): Expression {
    return this.builder.named("json character", () => {
      const hex = charSet(codePointsOf("0123456789abcdefABCDEF"));
      const raw = charSet(subtractSets(ANY_CODE_POINT, ESCAPED_IN_JSON));
      const plain = choice(
        sequence(charSet(codePointsOf("0123456789abcefABCEF")), hex, hex, hex),
        sequence(charSet(codePointsOf("dD")), charSet(codePointsOf("01234567")), hex, hex),
      );
      const high = sequence(charSet(codePointsOf("dD")), charSet(codePointsOf("89abAB")), hex, hex);
      const low = sequence(text("\\u"), charSet(codePointsOf("dD")), charSet(codePointsOf("cdefCDEF")), hex, hex);
      const escaped = choice(
        charSet(codePointsOf('"\\/bfnrt')),
        sequence(text("u"), choice(plain, sequence(high, low))),
      );
      return choice(raw, sequence(text("\\"), escaped));
    });
  }

  get string(): Expression {
    return this.builder.named("json string", () => this.quoted(repeat(this.character, 0, null)));
  }

  quoted(content: Expression): Expression {
    return sequence(text('"'), content, text('"'));
  }

  get number(): Expression {
    return this.builder.named("json number", anyNumber);
  }

  get value(): Expression {
    return this.builder.named("json value", () =>
      choice(this.anyObject, this.anyArray, this.string, this.number, texts(Object.values(this.layout.words))),
    );
  }

  get anyObject(): Expression {
    return this.builder.named("json object", () => this.members(this.member(this.string, this.value), 0, null));
  }

  get anyArray(): Expression {
    return this.builder.named("json array", () => this.elements(this.value, 0, null));
  }

  /** Members whose values share a rule also share what comes before the value, so that they have the same masks there. */
  member(key: Expression, value: Expression): Expression {
    const { beforeColon, afterColon } = this.layout;
    const assigned = (): Expression => sequence(beforeColon, text(":"), afterColon, value);
    if (value.kind !== "rule") return sequence(key, assigned());
    return sequence(key, this.builder.named(`json member value ${value.rule}`, assigned));
  }

  /** `distinct`: between items that must differ. */
  comma(distinct = false): Expression {
    const comma: Expression = distinct ? { kind: "mark", text: "," } : text(",");
    return sequence(this.layout.beforeComma, comma, this.layout.afterComma);
  }

  /** `distinct`: the automaton alone could repeat a name. */
  braces(content: Expression, distinct = false): Expression {
    const open: Expression = distinct ? { kind: "mark", text: "{" } : text("{");
    return sequence(open, this.layout.afterOpen, content, this.layout.beforeClose, text("}"));
  }

  /** `distinct`: the items must differ. */
  brackets(content: Expression, distinct = false): Expression {
    const open: Expression = distinct ? { kind: "mark", text: "[" } : text("[");
    return sequence(open, this.layout.afterOpen, content, this.layout.beforeClose, text("]"));
  }

  /** An object with min to max members of one kind. */
  members(member: Expression, min: number, max: number | null): Expression {
    return this.#listed(member, this.comma(), min, max, "{}", (content) => this.braces(content, true));
  }

  elements(element: Expression, min: number, max: number | null, distinct = false): Expression {
    const wrap = (content: Expression): Expression => this.brackets(content, distinct);
    return this.#listed(element, this.comma(distinct), min, max, "[]", wrap);
  }

  /** One exact value, in any allowed layout. Strings use as few escapes as possible. */
  literal(value: JsonValue): Expression {
    if (Array.isArray(value)) {
      if (value.length === 0) return text("[]");
      return this.brackets(this.#joined(value.map((item) => this.literal(item))));
    }
    if (typeof value === "object" && value !== null) {
      const entries = Object.entries(value);
      if (entries.length === 0) return text("{}");
      return this.braces(
        this.#joined(entries.map(([key, item]) => this.member(text(JSON.stringify(key)), this.literal(item)))),
      );
    }
    return text(this.scalar(value));
  }

  scalar(value: JsonValue): string {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new GrammarError("a number in enum or const is too large");
    }
    const word = String(value) as keyof JsonLayout["words"];
    return typeof value === "boolean" || value === null ? this.layout.words[word] : JSON.stringify(value);
  }

  #joined(items: readonly Expression[]): Expression {
    return sequence(...items.flatMap((item, index) => (index === 0 ? [item] : [this.comma(), item])));
  }

  #listed(
    item: Expression,
    comma: Expression,
    min: number,
    max: number | null,
    none: string,
    wrap: (content: Expression) => Expression,
  ): Expression {
    const more = repeat(sequence(comma, item), Math.max(0, min - 1), max === null ? null : max - 1);
    const options: Expression[] = [];
    if (min === 0) options.push(text(none));
    if (max !== 0) options.push(wrap(sequence(item, more)));
    return choice(...options);
  }
}
