// Where a text stands inside an array whose items must differ. Positions are immutable, so tokens can be tried out. Each
// knows its rivals: per enclosing array of this kind, the earlier items that the current one may still become equal to.
// Names within an object must differ, too: an item that could take a member back would escape its rivals.

import { bareValue, includesKey, listValue, NO_MEMBERS, objectValue, scalar, someBegin, type Value } from "./values.ts";

/** The outermost array's list comes first. */
type Rivals = readonly (readonly Value[])[];

interface Frame {
  readonly parent: Frame | null;
  /** Values so far. */
  readonly items: readonly Value[];
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

  /** Behind the bracket of an outermost array. */
  static start(): Position {
    return Position.#opened(null, null, true, []);
  }

  static #opened(
    parent: Frame | null,
    members: ReadonlyMap<string, Value> | null,
    distinct: boolean,
    rivals: Rivals,
  ): Position {
    return new Position({ parent, items: [], members, name: "", distinct, rivals }, "open", rivals);
  }

  get inString(): boolean {
    return this.phase === "string" || this.phase === "key";
  }

  /** Length of the number or word being written. */
  get bareLength(): number {
    return this.phase === "bare" ? this.#text.length : 0;
  }

  /** Whether an item or a name may still become equal to an earlier one. If not, any way to end the item is right. */
  get atRisk(): boolean {
    switch (this.phase) {
      case "string":
        return this.#rivals.some((rivals) => someBegin(rivals, `"${this.#text}`));
      case "bare":
        return this.#rivals.some((rivals) => someBegin(rivals, this.#text));
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
    return new Position(this.#frame, this.phase, this.#rivals, text, pending);
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
    if (char === '"') return new Position(frame, "string", rivals);
    if (char === "{" || char === "[") {
      const alike = rivals.map((each) => each.filter(({ key }) => key.startsWith(char)));
      return Position.#opened(frame, char === "{" ? NO_MEMBERS : null, char === "[" && marked, alike);
    }
    return isBare(char.charCodeAt(0)) ? new Position(frame, "bare", rivals, char) : null;
  }

  #itemRivals({ items, distinct, rivals }: Frame): Rivals {
    const outer = rivals.map((each) =>
      each.flatMap((rival) => (items.length < rival.items.length ? [rival.items[items.length]!] : [])),
    );
    return distinct ? [...outer, items] : outer;
  }

  #closed(): Position | null | typeof REPEATED {
    const { parent, items, members } = this.#frame;
    if (parent === null) return null;
    return this.#completed(parent, members === null ? listValue(items) : objectValue(members));
  }

  #completed(frame: Frame, value: Value): Position | typeof REPEATED {
    const { items, members, name } = frame;
    if (frame.distinct && includesKey(items, value.key)) return REPEATED;
    const same = (rival: Value): boolean =>
      (members === null ? rival.items[items.length] : rival.members.get(name))?.key === value.key;
    const rivals = frame.rivals.map((each) => each.filter(same));
    const grown =
      members === null
        ? { ...frame, rivals, items: [...items, value] }
        : { ...frame, rivals, members: new Map(members).set(name, value) };
    return new Position(grown, "after", rivals);
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
