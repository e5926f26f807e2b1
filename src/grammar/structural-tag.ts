// Structural tags: free text with constrained sections. Translates the current form ({type, format}) and the older one
// (structures and triggers) to expressions.

import { ANY_CODE_POINT } from "./code-points.ts";
import type { JsonOptions } from "./constraint.ts";
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
} from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";
import { isObject, isSchema, type JsonValue } from "./json-schema/keywords.ts";
import { type OnIgnored, schemaExpression } from "./json-schema/schema-compiler.ts";
import { parseGrammarSource } from "./syntax/lark.ts";
import { parseRegex } from "./syntax/regex.ts";

type Fields = { [key: string]: JsonValue };

const MAX_DEPTH = 50;

export function structuralTag(
  tag: JsonValue,
  options: JsonOptions,
  builder: GrammarBuilder,
  onIgnored: OnIgnored,
): Expression {
  if (!isObject(tag)) throw new GrammarError("a structural tag must be a JSON object");
  const compiler = new TagCompiler(options, builder, onIgnored);
  if (tag.format !== undefined) return compiler.format(tag.format, "format", null, 0);
  if (tag.structures !== undefined || tag.triggers !== undefined) return compiler.legacy(tag);
  throw new GrammarError('a structural tag needs "format" (or "structures" and "triggers")');
}

interface Tag {
  readonly begin: string;
  readonly ends: readonly string[];
  /** Everything after `begin`, including the end. */
  readonly rest: Expression;
}

class TagCompiler {
  readonly #options: JsonOptions;
  readonly #builder: GrammarBuilder;
  readonly #onIgnored: OnIgnored;

  constructor(options: JsonOptions, builder: GrammarBuilder, onIgnored: OnIgnored) {
    this.#options = options;
    this.#builder = builder;
    this.#onIgnored = onIgnored;
  }

  legacy(tag: Fields): Expression {
    const structures = list(tag, "structures", "structural tag");
    const tags = structures.map((item, index): Tag => {
      const where = `structures[${index}]`;
      const fields = object(item, where);
      const end = string(fields, "end", where);
      const schema = this.#schema(fields.schema, where);
      return { begin: string(fields, "begin", where), ends: [end], rest: sequence(schema, text(end)) };
    });
    return this.#triggered(
      tags,
      strings(tag, "triggers", "structural tag"),
      { atLeastOne: false, once: false },
      "structural tag",
    );
  }

  /** `ends` are the texts that end the enclosing tag. Free text stops there. */
  format(value: JsonValue, where: string, ends: readonly string[] | null, depth: number): Expression {
    if (depth > MAX_DEPTH) throw new GrammarError(`the structural tag is nested deeper than ${MAX_DEPTH}`);
    const fields = object(value, where);
    const inner = (item: JsonValue, name: string, itemEnds: readonly string[] | null): Expression =>
      this.format(item, `${where}.${name}`, itemEnds, depth + 1);
    switch (fields.type) {
      case "const_string":
        return text(string(fields, "value", where));
      case "json_schema":
        return this.#schema(fields.json_schema, where);
      case "regex":
        return this.#named(where, () => parseRegex(string(fields, "pattern", where), "full"));
      case "grammar":
        return this.#named(where, () => parseGrammarSource(string(fields, "grammar", where), this.#builder));
      case "any_text":
        return this.#anyText(ends);
      case "sequence": {
        const elements = list(fields, "elements", where);
        return sequence(
          ...elements.map((item, index) =>
            inner(item, `elements[${index}]`, index === elements.length - 1 ? ends : null),
          ),
        );
      }
      case "or":
        return choice(...list(fields, "elements", where).map((item, index) => inner(item, `elements[${index}]`, null)));
      case "tag": {
        const tag = this.#tag(fields, where, depth);
        return sequence(text(tag.begin), tag.rest);
      }
      case "triggered_tags": {
        const tags = this.#tags(fields, where, depth);
        const flags = {
          atLeastOne: flag(fields, "at_least_one", where),
          once: flag(fields, "stop_after_first", where),
        };
        return this.#triggered(tags, strings(fields, "triggers", where), flags, where);
      }
      case "tags_with_separator":
        return this.#separated(fields, where, depth);
      default:
        throw new GrammarError(
          `unknown structural-tag type ${JSON.stringify(fields.type ?? null).slice(0, 60)}, at ${where}`,
        );
    }
  }

  #tag(fields: Fields, where: string, depth: number): Tag {
    const begin = string(fields, "begin", where);
    const ends = Array.isArray(fields.end) ? strings(fields, "end", where) : [string(fields, "end", where)];
    if (fields.content === undefined) throw new GrammarError(`missing "content", at ${where}`);
    const content = this.format(fields.content, `${where}.content`, ends, depth + 1);
    const stopsItself = isAnyText(fields.content) && !ends.includes("");
    return { begin, ends, rest: stopsItself ? content : sequence(content, choice(...ends.map(text))) };
  }

  #tags(fields: Fields, where: string, depth: number): Tag[] {
    const tags = list(fields, "tags", where);
    if (tags.length === 0) throw new GrammarError(`"tags" must not be empty, at ${where}`);
    return tags.map((tag, index) =>
      this.#tag(object(tag, `${where}.tags[${index}]`), `${where}.tags[${index}]`, depth + 1),
    );
  }

  #triggered(
    tags: readonly Tag[],
    triggers: readonly string[],
    flags: { atLeastOne: boolean; once: boolean },
    where: string,
  ): Expression {
    if (triggers.length === 0 || triggers.includes("")) {
      throw new GrammarError(`"triggers" must be non-empty strings, at ${where}`);
    }
    for (const tag of tags) {
      if (!triggers.some((trigger) => tag.begin.startsWith(trigger))) {
        throw new GrammarError(`no trigger is a prefix of ${JSON.stringify(tag.begin.slice(0, 60))}, at ${where}`);
      }
    }
    const rests = tags.map((tag) => this.#builder.rule(tag.rest));
    const used = triggers.filter((trigger) => tags.some((tag) => tag.begin.startsWith(trigger)));
    const branches = used.map((trigger) =>
      choice(
        ...tags.flatMap((tag, index) =>
          tag.begin.startsWith(trigger) ? [sequence(text(tag.begin.slice(trigger.length)), rests[index]!)] : [],
        ),
      ),
    );
    const texts = (loop: boolean, mayEnd: boolean): Expression => ({
      kind: "dispatch",
      triggers: used,
      branches,
      loop,
      mayEnd,
    });
    if (!flags.atLeastOne) return texts(!flags.once, true);
    // The first tag comes immediately. Text and further tags may follow.
    const first = choice(...tags.map((tag, index) => sequence(text(tag.begin), rests[index]!)));
    return flags.once ? first : sequence(first, texts(true, true));
  }

  #separated(fields: Fields, where: string, depth: number): Expression {
    const separator = text(string(fields, "separator", where));
    const one = this.#builder.rule(
      choice(...this.#tags(fields, where, depth).map((tag) => sequence(text(tag.begin), tag.rest))),
    );
    const all = flag(fields, "stop_after_first", where)
      ? one
      : sequence(one, repeat(sequence(separator, one), 0, null));
    return flag(fields, "at_least_one", where) ? all : optional(all);
  }

  #anyText(ends: readonly string[] | null): Expression {
    if (ends === null || ends.includes("")) return repeat(charSet(ANY_CODE_POINT), 0, null);
    return { kind: "dispatch", triggers: ends, branches: ends.map(() => empty), loop: false, mayEnd: false };
  }

  #schema(schema: JsonValue | undefined, where: string): Expression {
    if (!isSchema(schema)) throw new GrammarError(`a JSON schema is missing, at ${where}`);
    return this.#named(where, () => schemaExpression(schema, this.#options, this.#builder, this.#onIgnored));
  }

  #named(where: string, build: () => Expression): Expression {
    try {
      return build();
    } catch (error) {
      if (error instanceof GrammarError) throw new GrammarError(`${error.message}, in ${where}`);
      throw error;
    }
  }
}

function isAnyText(value: JsonValue): boolean {
  if (!isObject(value)) return false;
  if (value.type === "sequence" && Array.isArray(value.elements) && value.elements.length > 0) {
    return isAnyText(value.elements.at(-1)!);
  }
  return value.type === "any_text";
}

function object(value: JsonValue, where: string): Fields {
  if (!isObject(value)) throw new GrammarError(`expected an object, at ${where}`);
  return value;
}

function string(fields: Fields, name: string, where: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new GrammarError(`"${name}" must be a string, at ${where}`);
  if (/\p{Surrogate}/u.test(value)) throw new GrammarError(`"${name}" contains half of a surrogate pair, at ${where}`);
  return value;
}

function list(fields: Fields, name: string, where: string): JsonValue[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw new GrammarError(`"${name}" must be an array, at ${where}`);
  return value;
}

function strings(fields: Fields, name: string, where: string): string[] {
  const values = list(fields, name, where);
  if (!values.every((value) => typeof value === "string")) {
    throw new GrammarError(`"${name}" must contain only strings, at ${where}`);
  }
  return values as string[];
}

function flag(fields: Fields, name: string, where: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value !== "boolean") throw new GrammarError(`"${name}" must be a boolean, at ${where}`);
  return value;
}
