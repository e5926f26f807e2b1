// Where a text stands inside an array whose items must differ, or an object whose names must. Positions are immutable, so tokens can be tried out. Each
// knows its rivals: per enclosing array of this kind, the earlier items that the current one may still become equal to.
// Names within an object must differ, too: an item that could take a member back would escape its rivals.

import {
  bareValue,
  beginning,
  includesKey,
  includesNumber,
  isNumeric,
  listValue,
  NO_ITEMS,
  NO_MEMBERS,
  objectValue,
  scalar,
  type Value,
} from "./values.ts";

/** Lists of earlier items, outer arrays first. */
type Rivals = readonly (readonly Value[])[];

interface Frame {
  readonly parent: Frame | null;
  /** Finished items: most of them, and the latest. Only the second list is copied for every item. */
  readonly items: readonly Value[];
  readonly latest: readonly Value[];
  /** null in an array. */
  readonly members: ReadonlyMap<string, Value> | null;
  /** The member being written. */
  readonly name: string;
  /** Whether the items of this array must differ. */
  readonly distinct: boolean;
  /** Values that this container may still become equal to. */
  readonly rivals: Rivals;
}

/** `open`: directly behind the bracket. `after`: a value has ended. `name`: a name must follow. `bare`: inside a number or word. */
type Phase = "open" | "value" | "string" | "bare" | "after" | "name" | "key" | "colon";

/** Items that move together to the longer list, whose index is then made anew. */
const LATEST = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Two items or two names are equal. */
export const REPEATED = "repeated";

export class Position {
  readonly phase: Phase;
  readonly #frame: Frame;
  /** What has been written of a scalar: UTF-8 bytes, one per character, without quotes and escapes. */
  readonly #text: string;
  /** An escape sequence that has begun. */
  readonly #pending: string;
  /** Rivals of the value that is written or comes next, else those of the container. */
  readonly #rivals: Rivals;

  private constructor(frame: Frame, phase: Phase, rivals: Rivals, text = "", pending = "") {
    this.#frame = frame;
    this.phase = phase;
    this.#rivals = rivals;
    this.#text = text;
    this.#pending = pending;
  }

  /** Behind the bracket of an outermost array, or the brace of an outermost object. */
  static start(byte: number): Position {
    return byte === 0x5b ? Position.#opened(null, null, true, []) : Position.#opened(null, NO_MEMBERS, false, []);
  }

  static #opened(
    parent: Frame | null,
    members: ReadonlyMap<string, Value> | null,
    distinct: boolean,
    rivals: Rivals,
  ): Position {
    return new Position(
      { parent, items: NO_ITEMS, latest: NO_ITEMS, members, name: "", distinct, rivals },
      "open",
      rivals,
    );
  }

  get inString(): boolean {
    return this.phase === "string" || this.phase === "key";
  }

  /** What has been written of a number or word. */
  get bareText(): string {
    return this.phase === "bare" ? this.#text : "";
  }

  /** Whether the number or word, if it ends here, is unlike every rival. */
  get endsApart(): boolean {
    const { key } = bareValue(this.#text);
    return !this.#rivals.some((rivals) => includesKey(rivals, key));
  }

  /** Inside a string at risk: per byte, 1 = it may stay at risk with it. Any other byte makes it safe. null = unknown. */
  get riskyBytes(): Uint8Array | null {
    if (!this.inString || this.#pending !== "") return null;
    const risky = new Uint8Array(256);
    risky[QUOTE] = 1;
    risky[BACKSLASH] = 1;
    if (this.phase === "key") {
      const rivals = this.#rivals.flat().map(({ members }) => members);
      for (const members of [this.#frame.members!, ...rivals]) {
        for (const name of members.keys()) {
          if (name.startsWith(this.#text)) risky[name.charCodeAt(this.#text.length)] = 1;
        }
      }
      return risky;
    }
    // A string's key begins with a quote.
    const at = this.#text.length + 1;
    for (const { key } of this.#rivals.flat()) if (key.length > at) risky[key.charCodeAt(at)] = 1;
    return risky;
  }

  /** How many values the current one may become equal to, at most. */
  get rivalCount(): number {
    return this.#rivals.reduce((sum, rivals) => sum + rivals.length, 0);
  }

  /** Whether an item or a name may still become equal to an earlier one. If not, any way to end the item is right. */
  get atRisk(): boolean {
    switch (this.phase) {
      case "bare":
        // A number has many spellings, so it may become any other.
        return isNumeric(this.#text)
          ? this.#rivals.some(includesNumber)
          : this.#rivals.some((rivals) => beginning(rivals, this.#text).length > 0);
      case "key": {
        const begins = (name: string): boolean => name.startsWith(this.#text);
        if ([...this.#frame.members!.keys()].some(begins)) return true;
        return this.#rivals.some((rivals) => rivals.some(({ members }) => [...members.keys()].some(begins)));
      }
      case "name":
        return true;
      default:
        return this.#rivals.some((rivals) => rivals.length > 0);
    }
  }

  /**
   * After one more byte. null = outside of all arrays whose items must differ. `marked`: whether this bracket or comma
   * belongs to such an array.
   */
  step(byte: number, marked: boolean): Position | null | typeof REPEATED {
    switch (this.phase) {
      case "string":
      case "key":
        return this.#inside(byte);
      case "bare": {
        if (isBare(byte)) return this.#with(this.#text + String.fromCharCode(byte), "");
        const ended = this.endBare();
        return ended === REPEATED ? REPEATED : ended.step(byte, marked);
      }
      default:
        return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d) ? this : this.#structural(byte, marked);
    }
  }

  /** The number or word ends here. */
  endBare(): Position | typeof REPEATED {
    return this.#completed(this.#frame, bareValue(this.#text));
  }

  #with(text: string, pending: string): Position {
    const rivals = this.phase === "string" ? this.#rivals.map((each) => beginning(each, `"${text}`)) : this.#rivals;
    return new Position(this.#frame, this.phase, rivals, text, pending);
  }

  #inside(byte: number): Position | typeof REPEATED {
    const char = String.fromCharCode(byte);
    if (this.#pending !== "") {
      const begun = this.#pending + char;
      return isWholeEscape(begun) ? this.#with(this.#text + decoded(begun), "") : this.#with(this.#text, begun);
    }
    if (char === "\\") return this.#with(this.#text, char);
    if (char !== '"') return this.#with(this.#text + char, "");
    if (this.phase === "string") return this.#completed(this.#frame, scalar(`"${this.#text}`));
    const name = this.#text;
    if (this.#frame.members!.has(name)) return REPEATED;
    const rivals = this.#rivals.map((each) => each.filter(({ members }) => members.has(name)));
    return new Position({ ...this.#frame, name, rivals }, "colon", rivals);
  }

  #structural(byte: number, marked: boolean): Position | null | typeof REPEATED {
    const frame = this.#frame;
    const char = String.fromCharCode(byte);
    switch (this.phase) {
      case "open":
        if (char === "]" || char === "}") return this.#closed();
        return frame.members === null ? this.#value(this.#itemRivals(frame), char, marked) : this.#key(char);
      case "value":
        return this.#value(this.#rivals, char, marked);
      case "after": {
        if (char === "]" || char === "}") return this.#closed();
        if (char !== ",") return null;
        if (frame.members !== null) return new Position(frame, "name", frame.rivals);
        // Without a mark, the alternative that demands distinct items has ended.
        const next = frame.distinct && !marked ? { ...frame, distinct: false } : frame;
        if (!next.distinct && next.parent === null) return null;
        return new Position(next, "value", this.#itemRivals(next));
      }
      case "name":
        return this.#key(char);
      default: {
        if (char !== ":") return null;
        const rivals = frame.rivals.map((each) => each.map(({ members }) => members.get(frame.name)!));
        return new Position(frame, "value", rivals);
      }
    }
  }

  #key(char: string): Position | null {
    return char === '"' ? new Position(this.#frame, "key", this.#frame.rivals) : null;
  }

  #value(rivals: Rivals, char: string, marked: boolean): Position | null {
    const frame = this.#frame;
    if (char === '"') {
      return new Position(
        frame,
        "string",
        rivals.map((each) => beginning(each, char)),
      );
    }
    if (char === "{" || char === "[") {
      const alike = rivals.map((each) => each.filter(({ key }) => key.startsWith(char)));
      return Position.#opened(frame, char === "{" ? NO_MEMBERS : null, char === "[" && marked, alike);
    }
    return isBare(char.charCodeAt(0)) ? new Position(frame, "bare", rivals, char) : null;
  }

  #itemRivals({ items, latest, distinct, rivals }: Frame): Rivals {
    const index = items.length + latest.length;
    const outer = rivals.map((each) =>
      each.flatMap((rival) => (index < rival.items.length ? [rival.items[index]!] : [])),
    );
    return distinct ? [...outer, items, latest] : outer;
  }

  #closed(): Position | null | typeof REPEATED {
    const { parent, items, latest, members } = this.#frame;
    if (parent === null) return null;
    return this.#completed(parent, members === null ? listValue([...items, ...latest]) : objectValue(members));
  }

  #completed(frame: Frame, value: Value): Position | typeof REPEATED {
    const { items, latest, members, name } = frame;
    if (frame.distinct && [items, latest].some((each) => includesKey(each, value.key))) return REPEATED;
    const index = items.length + latest.length;
    const same = (rival: Value): boolean =>
      (members === null ? rival.items[index] : rival.members.get(name))?.key === value.key;
    const rivals = frame.rivals.map((each) => each.filter(same));
    if (members !== null) {
      return new Position({ ...frame, rivals, members: new Map(members).set(name, value) }, "after", rivals);
    }
    const grown =
      latest.length < LATEST
        ? { latest: [...latest, value] }
        : { items: [...items, ...latest, value], latest: NO_ITEMS };
    return new Position({ ...frame, rivals, ...grown }, "after", rivals);
  }
}

/** Numbers, true, false, null and Python's words. */
export function isBare(byte: number): boolean {
  const letter = byte | 0x20;
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (letter >= 0x61 && letter <= 0x7a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}

/** The first half of a surrogate pair waits for the second. */
function isWholeEscape(begun: string): boolean {
  if (begun[1] !== "u") return true;
  return begun.length === (/^\\u[dD][89abAB]/.test(begun) ? 12 : 6);
}

function decoded(sequence: string): string {
  return Buffer.from(JSON.parse(`"${sequence}"`) as string, "utf8").toString("latin1");
}
