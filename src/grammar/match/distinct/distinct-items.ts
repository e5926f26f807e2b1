// Keeps the items of an array and the names of an object apart while they are generated. The automaton cannot: it would have to remember them. It
// marks the brackets and commas of such arrays and the braces of such objects, and this check runs beside it. A token that would repeat an item is
// removed from the mask, and so is one after which every way to end the item would repeat one. The check costs nothing
// in a program without marks.
//
// Once an item differs from all earlier ones it can end in any way, and the schema compiler has made sure that there are
// enough values for the least number of items. So there is always a way to finish.

import type { Program } from "../../automaton/program.ts";
import type { Configuration, Matcher } from "../matcher.ts";
import type { TokenTrie } from "../token-trie.ts";
import { isBare, Position, REPEATED } from "./position.ts";

// Which subtrees of a token trie hold tokens that can end an item or begin another. Only those need a look while nothing
// can be repeated yet.

/** A comma. */
const COMMA = 1;
/** A quote, and later a comma: outside of the string that it ends. */
const QUOTE_COMMA = 2;
/** An opening bracket or brace, and later a comma. */
const BRACKET_COMMA = 4;

/** Anything but a few digits. */
const OTHER_THAN_DIGITS = 8;

/** Digits that a token may add to a number without a look. */
const FEW_DIGITS = 4;

const TRIES = new WeakMap<TokenTrie, Uint8Array>();

/** Per node: what the bytes from this node on can contain, over all tokens at and below it. */
function separatorsOf(trie: TokenTrie): Uint8Array {
  let separators = TRIES.get(trie);
  if (separators === undefined) {
    separators = findSeparators(trie);
    TRIES.set(trie, separators);
  }
  return separators;
}

/** From the last node to the first, so that a node comes after everything below it. */
function findSeparators({ nodeCount, byte, depth }: TokenTrie): Uint8Array {
  const out = new Uint8Array(nodeCount);
  /** By level: what the siblings seen so far contain, and the length of their longest token. */
  const found = new Uint8Array(256);
  const digits = new Uint8Array(256);
  for (let node = nodeCount - 1; node > 0; node--) {
    const level = depth[node]!;
    const below = found[level + 1]!;
    found[level + 1] = 0;
    let own = below;
    if (byte[node] === 0x2c) own |= COMMA;
    if (byte[node] === 0x22 && below & COMMA) own |= QUOTE_COMMA;
    if ((byte[node] === 0x5b || byte[node] === 0x7b) && below & COMMA) own |= BRACKET_COMMA;
    const length = digits[level + 1]! + 1;
    digits[level + 1] = 0;
    digits[level] = Math.max(digits[level]!, length);
    if (byte[node]! < 0x30 || byte[node]! > 0x39 || length > FEW_DIGITS) own |= OTHER_THAN_DIGITS;
    out[node] = own;
    found[level]! |= own;
  }
  return out;
}

/** Where a text stands, in the automaton and among the items of open arrays. */
export interface Place {
  readonly configuration: Configuration;
  /** null = in no such array or object. */
  readonly position: Position | null;
}

/** Steps that a search for a way out may take, and how many times more if the mask would be empty otherwise. */
const SEARCH_STEPS = 2000;
const INSISTENCE = 20;
/** A search goes no deeper, and makes no number longer. */
const SEARCH_DEPTH = 1500;
const LONGEST_NUMBER = 40;
/** More digits after a number so far give more values than there are rivals, and a double tells them apart. */
const MANY_DIGITS = 4;
const MANY_RIVALS = 9_000;
const SHORT_NUMBER = /^-?\d{1,6}(?:\.\d{0,3})?$/;
/** Trie nodes that cost about as much as visiting one item of a configuration. */
const NODES_PER_WORK = 4;

const DIGITS = [0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39];
/** A comma and closing brackets. */
const ENDS = [0x2c, 0x5d, 0x7d];

export class DistinctItems {
  readonly #matcher: Matcher;
  readonly #trie: TokenTrie;
  readonly #separators: Uint8Array;
  /** Bytes of each class. */
  readonly #bytes: readonly (readonly number[])[];
  /** How many more digits a number may take, whichever they are, and end after each; counted as far as needed. */
  readonly #freeDigits = new WeakMap<Configuration, number>();
  #steps = 0;

  /** null if nothing in the program is marked. */
  static of(matcher: Matcher, trie: TokenTrie): DistinctItems | null {
    return matcher.program.marks.length === 0 ? null : new DistinctItems(matcher, trie);
  }

  private constructor(matcher: Matcher, trie: TokenTrie) {
    this.#matcher = matcher;
    this.#trie = trie;
    this.#separators = separatorsOf(trie);
    this.#bytes = bytesOfClasses(matcher.program);
  }

  /** null when a byte is not legal. */
  advance(from: Place, bytes: Uint8Array): Place | null {
    let { configuration, position } = from;
    for (const byte of bytes) {
      const next = this.#matcher.advance(configuration, this.#matcher.program.classes[byte]!);
      if (next === null) return null;
      const after = this.#step(position, byte, next);
      if (after === REPEATED) return null;
      configuration = next;
      position = after;
    }
    return { configuration, position };
  }

  /** Removes the tokens that lead to equal items. `legal` has all tokens that the automaton allows. */
  prune(place: Place, legal: Int32Array, out: Int32Array): void {
    out.set(legal);
    if (this.#walk(place, out, SEARCH_STEPS) && out.every((word) => word === 0)) {
      out.set(legal);
      this.#walk(place, out, SEARCH_STEPS * INSISTENCE);
    }
  }

  /** Returns whether a search ended without a way out. */
  #walk(start: Place, out: Int32Array, steps: number): boolean {
    const { byte, depth, skip, nodeCount, tokenOffsets } = this.#trie;
    const { classes } = this.#matcher.program;
    const configurations = [start.configuration];
    const positions = [start.position];
    const wanted = [this.#wantedBelow(start)];
    const risky: (Uint8Array | null)[] = [start.position?.riskyBytes ?? null];
    let stuck = false;
    let visited = 0;
    for (let node = 1; node < nodeCount; ) {
      const level = depth[node]!;
      const end = skip[node]!;
      const need = wanted[level - 1]!;
      const safe = risky[level - 1]?.[byte[node]!] === 0 && (this.#separators[node]! & QUOTE_COMMA) === 0;
      if (safe || (need !== 0 && (this.#separators[node]! & need) === 0)) {
        node = end;
        continue;
      }
      visited++;
      const next = this.#matcher.advance(configurations[level - 1]!, classes[byte[node]!]!);
      const after = next === null ? null : this.#step(positions[level - 1]!, byte[node]!, next);
      if (next === null || after === REPEATED) {
        if (next !== null) this.#trie.removeTokens(out, node, end);
        node = end;
        continue;
      }
      const needAfter = this.#wantedBelow({ configuration: next, position: after });
      if (needAfter === 0 && tokenOffsets[node]! < tokenOffsets[node + 1]!) {
        this.#steps = steps;
        if (!this.#hasWayOut(next, after!, SEARCH_DEPTH)) {
          stuck = true;
          this.#trie.removeTokens(out, node, end);
          node = end;
          continue;
        }
      }
      configurations[level] = next;
      positions[level] = after;
      wanted[level] = needAfter;
      risky[level] = needAfter === 0 ? after!.riskyBytes : null;
      node++;
    }
    this.#matcher.spend(Math.ceil(visited / NODES_PER_WORK));
    return stuck;
  }

  #step(position: Position | null, byte: number, next: Configuration): Position | null | typeof REPEATED {
    const opens = byte === 0x5b || byte === 0x7b;
    const separator = opens || byte === 0x2c;
    if (position === null) return opens && this.#isMarked(next) ? Position.start(byte) : null;
    return position.step(byte, separator && this.#isMarked(next));
  }

  #isMarked({ kernel }: Configuration): boolean {
    const { marks } = this.#matcher.program;
    return kernel.sets.some((set) => set.kernel.some((state) => marks[state] === 1));
  }

  /** What the tokens below must contain to matter; 0 = all matter. */
  #wantedBelow({ configuration, position }: Place): number {
    if (position === null) return BRACKET_COMMA;
    if (!position.atRisk) return position.inString ? QUOTE_COMMA : COMMA;
    if (!SHORT_NUMBER.test(position.bareText) || position.rivalCount > MANY_RIVALS) return 0;
    return this.#countFreeDigits(configuration, FEW_DIGITS + MANY_DIGITS) < FEW_DIGITS + MANY_DIGITS
      ? 0
      : OTHER_THAN_DIGITS;
  }

  #countFreeDigits(configuration: Configuration, most: number): number {
    if (most === 0) return 0;
    const known = this.#freeDigits.get(configuration);
    if (known !== undefined) return known;
    const after = DIGITS.map((digit) => this.#next(configuration, digit));
    const [next] = after;
    const free = next && after.every((each) => each === next) && this.#mayEndNumber(next);
    const count = free ? 1 + this.#countFreeDigits(next, most - 1) : 0;
    if (most === FEW_DIGITS + MANY_DIGITS) this.#freeDigits.set(configuration, count);
    return count;
  }

  #mayEndNumber(configuration: Configuration): boolean {
    return ENDS.some((byte) => this.#next(configuration, byte) !== null);
  }

  #next(configuration: Configuration, byte: number): Configuration | null {
    return this.#matcher.advance(configuration, this.#matcher.program.classes[byte]!);
  }

  /** Whether some text leads from here to a place where nothing can be repeated. Depth first, with a limit. */
  #hasWayOut(configuration: Configuration, position: Position, depth: number): boolean {
    this.#matcher.spend(1);
    if (depth === 0 || this.#steps-- <= 0) return false;
    if (position.phase === "bare" && position.endsApart && this.#mayEndNumber(configuration)) return true;
    const later: number[] = [];
    let tried = false;
    for (const [byteClass, bytes] of this.#bytes.entries()) {
      const next = this.#matcher.advance(configuration, byteClass);
      if (next === null) continue;
      for (const byte of bytes) {
        if (isSpace(byte) && !position.inString) later.push(byte);
        else if (byte === 0x5c) later.push(byte);
        else {
          tried = true;
          if (this.#leadsOut(position, byte, next, depth)) return true;
        }
      }
    }
    for (const byte of later) {
      // Whitespace changes nothing, so it is of use only where it must be. Escapes spell what plain characters can.
      if (tried && isSpace(byte)) continue;
      const next = this.#next(configuration, byte)!;
      if (this.#leadsOut(position, byte, next, depth)) return true;
    }
    return false;
  }

  #leadsOut(position: Position, byte: number, next: Configuration, depth: number): boolean {
    if (position.phase === "bare") {
      if (position.bareText.length >= LONGEST_NUMBER && isBare(byte)) return false;
      // A number ends together with what follows it, which may put the next item at risk.
      const ended = isBare(byte) ? position : position.endBare();
      if (ended === REPEATED) return false;
      if (!ended.atRisk) return true;
    }
    const after = this.#step(position, byte, next);
    if (after === REPEATED) return false;
    return after === null || !after.atRisk || this.#hasWayOut(next, after, depth - 1);
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function bytesOfClasses({ classes, classCount }: Program): number[][] {
  const bytes = Array.from({ length: classCount }, (): number[] => []);
  for (let byte = 0; byte < 256; byte++) bytes[classes[byte]!]!.push(byte);
  return bytes;
}
