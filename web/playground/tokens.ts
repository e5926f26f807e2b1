// Tokens of a reply from the log-probability entries of the wire. The page asks for tokens as ids, because alternatives can
// only be continued by id; their text comes from their bytes.

export interface WireEntry {
  /** "token_id:N". */
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs?: Omit<WireEntry, "top_logprobs">[];
}

export interface Alternative {
  id: number;
  text: string;
  bytes: Iterable<number>;
  logprob: number;
}

export interface Token extends Alternative {
  /** The most likely tokens of this place, the likeliest first. */
  top: readonly Alternative[];
}

const REPLACEMENT = "\ufffd";

/** Reads the entries of one reply in order. A character that several tokens make up belongs to the last of them. */
export class TokenReader {
  readonly #decoder = new TextDecoder();

  read(entry: WireEntry): Token {
    const bytes = entry.bytes ?? [];
    const text = this.#decoder.decode(Uint8Array.from(bytes), { stream: true });
    const top = (entry.top_logprobs ?? []).map(alternative).sort((a, b) => b.logprob - a.logprob);
    return { id: idOf(entry.token), text, bytes, logprob: entry.logprob, top };
  }
}

function alternative(entry: Omit<WireEntry, "top_logprobs">): Alternative {
  const bytes = entry.bytes ?? [];
  return {
    id: idOf(entry.token),
    text: new TextDecoder().decode(Uint8Array.from(bytes)),
    bytes,
    logprob: entry.logprob,
  };
}

export function idOf(token: string): number {
  return Number(/^token_id:(\d+)$/.exec(token)?.[1] ?? Number.NaN);
}

/** The text of tokens, with half characters as the replacement character. */
export function textOf(tokens: readonly Pick<Token, "bytes">[]): string {
  return new TextDecoder().decode(Uint8Array.from(tokens.flatMap(({ bytes }) => [...bytes])));
}

/** A token's text as a label: spaces and line ends are visible, half a character is a number. */
export function label({ text, bytes }: { text: string; bytes?: Iterable<number> }): string {
  if (text === "" || text.includes(REPLACEMENT)) {
    const hex = [...(bytes ?? [])].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    return hex === "" ? text || "∅" : `⟨${hex}⟩`;
  }
  return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll("\r", "␍").replaceAll(/^ | $/g, "␣");
}

/** Surprise of a token between 0 (certain) and 1 (six nats or more). */
export function surprise(logprob: number): number {
  return Math.min(1, Math.max(0, -logprob / 6));
}

/** The first place where two replies have other tokens; null if they are the same to the end. */
export function firstDifference(a: readonly Pick<Token, "id">[], b: readonly Pick<Token, "id">[]): number | null {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) if (a[i]!.id !== b[i]!.id) return i;
  return a.length === b.length ? null : shorter;
}

/** Markers such as <|im_end|>, which are no part of the answer. */
export function isSpecial(text: string): boolean {
  return /^<[|/]?[\w|]+[|]?>$/.test(text);
}
