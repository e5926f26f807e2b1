// Regular expressions (the syntax shared by Rust and ECMAScript, with ECMAScript's lookahead, without lookbehind and back
// references) to expressions. `full`: the whole text matches. `search`: the text contains a match, as JSON Schema's
// `pattern` means it. `part`: like full, but more text follows, into which a lookahead would see; it is refused.

import { complementDfa, determinise, intersectDfas } from "../char-dfa.ts";
import { anyCodePoint, type CodePointSet, codePointsOf } from "../code-points.ts";
import { charSet, choice, type Expression, empty, repeat, sequence } from "../expression.ts";
import { errorAt, GrammarError } from "../grammar-error.ts";
import { dot, ignoringCase } from "./character-classes.ts";
import { parseClass, parseClassEscape } from "./regex-class.ts";
import { SourceReader } from "./source-reader.ts";

const maxDepth = 200;
const maxRepeat = 100_000;

type Assertion = "start" | "end";
interface Look {
  kind: "look";
  negative: boolean;
  branches: Part[][];
  position: number;
}
/** A group with a lookahead inside, kept whole because the lookahead speaks of what follows the group. */
interface OpenGroup {
  kind: "open group";
  optional: boolean;
  branches: Part[][];
}
/** Anchors and lookaheads stay visible until what stands before and after them is known. */
type Part = Expression | { kind: "anchor"; anchor: Assertion; position: number } | Look | OpenGroup;
interface Flags {
  ignoreCase: boolean;
  dotAll: boolean;
  /** Inside a negative lookahead: what matches is excluded, so it is read as widely as any dialect does. */
  wide: boolean;
}

const anything = repeat(charSet(anyCodePoint), 0, null);
const subject = "a regex with lookahead";

type Mode = "full" | "search" | "part";

export function parseRegex(pattern: string, mode: Mode): Expression {
  const nul = pattern.indexOf("\0");
  if (nul >= 0) throw errorAt("a regex must not contain a NUL character", nul);
  const parser = new RegexParser(pattern);
  const branches = parser.alternatives({ ignoreCase: false, dotAll: false, wide: false }, 0);
  if (!parser.reader.done) throw parser.error("unmatched )");
  return choice(...branches.map((branch) => resolveAnchors(branch, mode)));
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
    if (depth > maxDepth) throw this.error(`groups nested deeper than ${maxDepth}`);
    const branches: Part[][] = [];
    // Flags set in the middle of a group hold to its end, across alternatives.
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
        if (quantifier.min !== 0 || quantifier.max !== 1 || atom[0]?.kind === "look")
          throw this.error("lookahead inside a repetition is not supported", start);
        parts.push({ kind: "open group", optional: true, branches: [atom] });
        continue;
      }
      if (atom.some((part) => part.kind === "anchor")) throw this.error("an anchor cannot be repeated", start);
      parts.push(repeat(sequence(...(atom as Expression[])), quantifier.min, quantifier.max));
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
    if (reader.at("*") || reader.at("+") || reader.at("?"))
      throw this.error(`nothing to repeat before ${reader.peek()}`);
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
    // Anchors inside a group with alternatives: only the edges of the whole pattern could satisfy them.
    const anchored = branches.flat().find((part) => part.kind === "anchor");
    if (anchored?.kind === "anchor") {
      throw this.error(
        "anchors inside a group with alternatives are not supported; anchor each outer alternative",
        anchored.position,
      );
    }
    return [choice(...branches.map((branch) => sequence(...(branch as Expression[]))))];
  }

  #look(flags: Flags, depth: number, position: number): Look {
    const negative = this.reader.next() === "!";
    if (negative && flags.wide) throw this.error("a negative lookahead inside another is not supported", position);
    if (negative && flags.ignoreCase)
      throw this.error("a negative lookahead with the flag i is not supported", position);
    const branches = this.alternatives({ ...flags, wide: flags.wide || negative }, depth + 1);
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
    if (reader.at("b") || reader.at("B")) throw this.error("word boundaries are not supported", position);
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
      if (bounds.max !== null && bounds.max < min)
        throw this.error("repetition bounds are in the wrong order", position);
      if (Math.max(min, bounds.max ?? 0) > maxRepeat)
        throw this.error(`repetition of more than ${maxRepeat}`, position);
    } else return null;
    // Lazy or greedy, the language is the same.
    reader.take("?");
    if (reader.at("*") || reader.at("+") || reader.at("?") || reader.at("{")) throw this.error("nothing to repeat");
    return bounds;
  }
}

function hasLook(parts: readonly Part[]): boolean {
  return parts.some((part) => part.kind === "look" || part.kind === "open group");
}

/** Texts of `parts` and whatever may follow them. A lookahead is an intersection with all of the rest of the text. */
function followed(parts: readonly Part[], after: Expression, atStart: boolean): Expression {
  const leading = parts.findIndex((part) => part.kind !== "anchor" && part.kind !== "look");
  let rest = after;
  for (const [index, part] of [...parts.entries()].reverse()) {
    const first = atStart && (leading < 0 || index <= leading);
    if (part.kind === "anchor") {
      const holds = part.anchor === "start" ? first : determinise(rest, subject).states[0]!.final;
      if (!holds) throw errorAt("invalid regex: an anchor in the middle can never match", part.position);
      if (part.anchor === "end") rest = empty;
    } else if (part.kind === "look") {
      const seen = determinise(choice(...part.branches.map((branch) => followed(branch, anything, first))), subject);
      const wanted = part.negative ? complementDfa(seen) : seen;
      rest = { kind: "dfa", dfa: intersectDfas(wanted, determinise(rest, subject), subject), json: false };
    } else if (part.kind === "open group") {
      const options = part.branches.map((branch) => followed(branch, rest, first));
      if (part.optional) options.push(rest);
      // As an automaton the rest stays one thing, however often it is needed before.
      rest = { kind: "dfa", dfa: determinise(choice(...options), subject), json: false };
    } else {
      rest = sequence(part, rest);
    }
  }
  return rest;
}

function resolveAnchors(parts: readonly Part[], mode: Mode): Expression {
  const isAnchor = (part: Part | undefined, anchor: Assertion): boolean =>
    part?.kind === "anchor" && part.anchor === anchor;
  let from = 0;
  let to = parts.length;
  while (from < to && isAnchor(parts[from], "start")) from++;
  while (to > from && isAnchor(parts[to - 1], "end")) to--;
  if (hasLook(parts)) {
    if (mode === "part") throw new GrammarError("invalid regex: lookahead is not supported here");
    if (mode === "full" || from > 0) return followed(parts, mode === "full" ? empty : anything, true);
    return sequence(anything, followed(parts, anything, false));
  }
  const inner = parts.slice(from, to);
  for (const part of inner) {
    if (part.kind === "anchor") throw errorAt("invalid regex: an anchor in the middle can never match", part.position);
  }
  const before = mode === "search" && from === 0 ? anything : empty;
  const after = mode === "search" && to === parts.length ? anything : empty;
  return sequence(before, ...(inner as Expression[]), after);
}
