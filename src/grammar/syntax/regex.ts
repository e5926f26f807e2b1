// Turns regular expressions into expressions. The syntax is what Rust and ECMAScript share, with ECMAScript's lookahead.
// Lookbehind and back references are refused.

import { type CodePointSet, codePointsOf } from "../code-points.ts";
import { charSet, choice, type Expression, repeat } from "../expression.ts";
import { errorAt, type GrammarError } from "../grammar-error.ts";
import { dot, ignoringCase } from "./character-classes.ts";
import { parseClass, parseClassEscape } from "./regex-class.ts";
import { hasLook, inContext, joined, type Look, type Mode, type Part } from "./regex-context.ts";
import { SourceReader } from "./source-reader.ts";

const MAX_DEPTH = 200;
const MAX_REPEAT = 100_000;

interface Flags {
  ignoreCase: boolean;
  dotAll: boolean;
  /** Matches are excluded, so classes are read as widely as in any dialect. Each negative lookahead turns this around. */
  wide: boolean;
}

/** `wide`: matches will be excluded, so classes are read as widely as in any dialect. */
export function parseRegex(pattern: string, mode: Mode, wide = false): Expression {
  const parser = new RegexParser(pattern);
  const branches = parser.alternatives({ ignoreCase: false, dotAll: false, wide }, 0);
  if (!parser.reader.done) throw parser.error("unmatched )");
  return choice(...branches.map((branch) => inContext(branch, mode)));
}

class RegexParser {
  readonly reader: SourceReader;

  constructor(pattern: string) {
    this.reader = new SourceReader(pattern);
  }

  error(message: string, position: number = this.reader.position): GrammarError {
    return errorAt(`invalid regex: ${message}`, position);
  }

  alternatives(flags: Flags, depth: number): Part[][] {
    if (depth > MAX_DEPTH) throw this.error(`groups nested deeper than ${MAX_DEPTH}`);
    const branches: Part[][] = [];
    // Flags set in the middle of a group apply until its end, across alternatives.
    const scope = { ...flags };
    do branches.push(this.#branch(scope, depth));
    while (this.reader.take("|"));
    return branches;
  }

  #branch(flags: Flags, depth: number): Part[] {
    const parts: Part[] = [];
    while (!this.reader.done && !this.reader.at("|") && !this.reader.at(")")) {
      const start = this.reader.position;
      const atom = this.#atom(flags, depth);
      const quantifier = this.#quantifier();
      if (!quantifier) {
        parts.push(...atom);
        continue;
      }
      if (hasLook(atom)) {
        if (quantifier.min !== 0 || quantifier.max !== 1 || atom[0]?.kind === "look") {
          throw this.error("lookahead inside a repetition is not supported", start);
        }
        parts.push({ kind: "open group", optional: true, branches: [atom] });
        continue;
      }
      parts.push(repeat(joined(atom), quantifier.min, quantifier.max));
    }
    return parts;
  }

  #atom(flags: Flags, depth: number): Part[] {
    const reader = this.reader;
    const position = reader.position;
    if (reader.take("(")) return this.#group(flags, depth, position);
    if (reader.take("[")) {
      return [charSet(parseClass(reader, (message, at) => this.error(message, at), flags.ignoreCase, flags.wide))];
    }
    if (reader.take(".")) return [charSet(dot(flags.dotAll, flags.wide))];
    if (reader.take("^")) return [{ kind: "anchor", anchor: "start", position }];
    if (reader.take("$")) return [{ kind: "anchor", anchor: "end", position }];
    if (reader.take("\\")) return [this.#escape(flags, position)];
    if (reader.at("*") || reader.at("+") || reader.at("?")) {
      throw this.error(`nothing to repeat before ${reader.peek()}`);
    }
    if (reader.at("{")) throw this.error("a literal { must be escaped as \\{");
    return [this.#set(codePointsOf(reader.next()), flags)];
  }

  #group(flags: Flags, depth: number, position: number): Part[] {
    const reader = this.reader;
    let scope = flags;
    if (reader.take("?")) {
      if (reader.at("=") || reader.at("!")) return [this.#look(flags, depth, position)];
      if (reader.at("<=") || reader.at("<!")) throw this.error("lookbehind is not supported", position);
      if (reader.at(">")) throw this.error("atomic groups are not supported", position);
      if (reader.take("P<") || reader.take("<")) {
        const name = reader.until(">");
        if (name === null || !/^[A-Za-z_]\w*$/.test(name)) throw this.error("bad group name", position);
      } else {
        const changed = this.#flags(flags, position);
        if (reader.take(")")) {
          Object.assign(flags, changed);
          return [];
        }
        if (!reader.take(":")) throw this.error("unknown group", position);
        scope = changed;
      }
    }
    const branches = this.alternatives(scope, depth + 1);
    if (!reader.take(")")) throw this.error("unclosed group", position);
    if (branches.length === 1) return branches[0]!;
    if (branches.some(hasLook)) return [{ kind: "open group", optional: false, branches }];
    return [choice(...branches.map(joined))];
  }

  #look(flags: Flags, depth: number, position: number): Look {
    const negative = this.reader.next() === "!";
    if (negative && flags.ignoreCase) {
      throw this.error("a negative lookahead with the flag i is not supported", position);
    }
    const branches = this.alternatives({ ...flags, wide: flags.wide !== negative }, depth + 1);
    if (!this.reader.take(")")) throw this.error("unclosed group", position);
    return { kind: "look", negative, branches, position };
  }

  #flags(current: Flags, position: number): Flags {
    const flags = { ...current };
    let on = true;
    for (;;) {
      if (this.reader.take("-")) on = false;
      else if (this.reader.take("i")) {
        if (on && flags.wide) throw this.error("the flag i inside a negative lookahead is not supported", position);
        flags.ignoreCase = on;
      } else if (this.reader.take("s")) flags.dotAll = on;
      else if (this.reader.take("u")) {
        if (!on) throw this.error("the u flag cannot be switched off", position);
      } else if (this.reader.at("m") || this.reader.at("x") || this.reader.at("U") || this.reader.at("R")) {
        throw this.error(`flag ${this.reader.peek()} is not supported`);
      } else return flags;
    }
  }

  #escape(flags: Flags, position: number): Part {
    const reader = this.reader;
    if (reader.done) throw this.error("a trailing \\ escapes nothing", position);
    if (/[1-9k]/.test(reader.peek())) throw this.error("back references are not supported", position);
    if (reader.take("b")) return { kind: "assertion", assertion: { asserts: "boundary", wide: flags.wide } };
    if (reader.take("B")) return { kind: "assertion", assertion: { asserts: "inside", wide: flags.wide } };
    if (reader.take("A")) return { kind: "anchor", anchor: "start", position };
    if (reader.take("z") || reader.take("Z")) return { kind: "anchor", anchor: "end", position };
    return this.#set(
      parseClassEscape(reader, (message, at) => this.error(message, at), flags.wide),
      flags,
    );
  }

  #set(set: CodePointSet, flags: Flags): Expression {
    return charSet(flags.ignoreCase ? ignoringCase(set) : set);
  }

  #quantifier(): { min: number; max: number | null } | null {
    const reader = this.reader;
    const position = reader.position;
    let bounds: { min: number; max: number | null };
    if (reader.take("*")) bounds = { min: 0, max: null };
    else if (reader.take("+")) bounds = { min: 1, max: null };
    else if (reader.take("?")) bounds = { min: 0, max: 1 };
    else if (reader.take("{")) {
      const counts = /^(\d+)(,(\d*))?$/.exec(reader.until("}") ?? "");
      if (!counts) throw this.error("a repetition is written {n}, {n,} or {n,m}", position);
      const min = Number(counts[1]);
      bounds = { min, max: counts[2] === undefined ? min : counts[3] === "" ? null : Number(counts[3]) };
      if (bounds.max !== null && bounds.max < min) {
        throw this.error("repetition bounds are in the wrong order", position);
      }
      if (Math.max(min, bounds.max ?? 0) > MAX_REPEAT) {
        throw this.error(`repetition of more than ${MAX_REPEAT}`, position);
      }
    } else return null;
    // Lazy or greedy, the language is the same.
    reader.take("?");
    if (reader.at("*") || reader.at("+") || reader.at("?") || reader.at("{")) throw this.error("nothing to repeat");
    return bounds;
  }
}
