// Splits a server-sent event stream into payloads, however the network cut it. Called for every token, so it decodes
// bytes as latin1: ids and numbers are ASCII. Text of errors is decoded properly by `utf8`.

export class EventReader {
  readonly #onPayload: (payload: string) => void;
  /** The line that has begun. Pieces are only joined when it ends: its search would take quadratic time. */
  #line = "";

  constructor(onPayload: (payload: string) => void) {
    this.#onPayload = onPayload;
  }

  push(bytes: Buffer): void {
    const text = bytes.toString("latin1");
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = this.#line + text.slice(from, end);
      this.#line = "";
      if (line.startsWith("data:")) this.#onPayload(line.slice(5).trim());
      from = end + 1;
    }
    this.#line += text.slice(from);
  }
}

/** Decodes text that was read as latin1. */
export function utf8(text: string): string {
  return Buffer.from(text, "latin1").toString();
}
