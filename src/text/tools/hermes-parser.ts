// Tool calls in the Hermes and Qwen style: <tool_call>{"name": …, "arguments": {…}}</tool_call>, any number of them, with
// text around them. A block that is not a call stays content, including its tags.

import { markerPrefix } from "../reasoning/reasoning-parser.ts";
import type { ReplyDelta, ReplyParser } from "../reply-parser.ts";
import { JsonCallReader } from "./json-call-reader.ts";
import { wholeCall } from "./whole-call.ts";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

export class HermesParser implements ReplyParser {
  #calls = 0;
  #phase: "text" | "call" | "block" | "closing" = "text";
  #held = "";
  #reader: JsonCallReader | null = null;

  push(text: string): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    this.#held += text;
    while (this.#step(deltas));
    return deltas;
  }

  finish(): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    const unread = this.#phase === "call" ? OPEN + (this.#reader?.held ?? "") : this.#phase === "block" ? OPEN : "";
    if (this.#phase === "call" && this.#reader?.committed) return deltas;
    if (this.#phase !== "closing") this.#content(unread + this.#held, deltas);
    return deltas;
  }

  /** Takes one step through the held text; false if it needs more text. */
  #step(deltas: ReplyDelta[]): boolean {
    switch (this.#phase) {
      case "text":
        return this.#text(deltas);
      case "call":
        return this.#call(deltas);
      case "block":
        return this.#block(deltas);
      default:
        return this.#closing();
    }
  }

  #text(deltas: ReplyDelta[]): boolean {
    const found = this.#held.indexOf(OPEN);
    if (found >= 0) {
      const before = this.#held.slice(0, found);
      this.#content(this.#calls > 0 ? before.trimEnd() : before, deltas);
      this.#held = this.#held.slice(found + OPEN.length);
      this.#reader = new JsonCallReader(this.#calls);
      this.#phase = "call";
      return true;
    }
    let keep = markerPrefix(this.#held, OPEN);
    // Line breaks between calls are layout, not content: wait for what follows them.
    if (this.#calls > 0) {
      keep = Math.max(keep, this.#held.length - this.#held.trimEnd().length, blankThenPrefix(this.#held, keep));
    }
    this.#content(this.#held.slice(0, this.#held.length - keep), deltas);
    this.#held = this.#held.slice(this.#held.length - keep);
    return false;
  }

  #call(deltas: ReplyDelta[]): boolean {
    if (this.#held === "") return false;
    const progress = this.#reader!.push(this.#held);
    deltas.push(...progress.deltas);
    this.#held = progress.left;
    if (progress.state === "reading") return false;
    if (progress.state === "done") this.#calls++;
    this.#phase = progress.state === "done" ? "closing" : "block";
    return true;
  }

  /** An unusual form: waits for the closing tag and reads the block as a whole. */
  #block(deltas: ReplyDelta[]): boolean {
    const found = this.#held.indexOf(CLOSE);
    if (found < 0) return false;
    const call = wholeCall(this.#held.slice(0, found));
    const block = OPEN + this.#held.slice(0, found) + CLOSE;
    this.#held = this.#held.slice(found + CLOSE.length);
    this.#phase = "text";
    if (call) {
      deltas.push({ kind: "tool_call", index: this.#calls++, name: call.name, argumentsText: call.argumentsText });
    } else this.#content(block, deltas);
    return true;
  }

  /** After a call's object: the closing tag, which some models forget. */
  #closing(): boolean {
    const rest = this.#held.trimStart();
    if (rest === "" || (rest.length < CLOSE.length && CLOSE.startsWith(rest))) return false;
    if (rest.startsWith(CLOSE)) this.#held = rest.slice(CLOSE.length);
    this.#phase = "text";
    return true;
  }

  #content(text: string, deltas: ReplyDelta[]): void {
    if (text === "" || (this.#calls > 0 && text.trim() === "")) return;
    deltas.push({ kind: "content", text });
  }
}

/** Length of blank space followed by a beginning of a marker at the end of the text. */
function blankThenPrefix(text: string, prefix: number): number {
  if (prefix === 0) return 0;
  const before = text.slice(0, text.length - prefix);
  return before.length - before.trimEnd().length + prefix;
}
