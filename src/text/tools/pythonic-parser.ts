// Tool calls as a Python list: [name(key=value, …), …]. A call comes out whole, soon after its closing parenthesis. A reply
// that does not begin like that is content, and so is the rest of a list that turns into something else.

import type { ReplyDelta, ReplyParser } from "../reply-parser.ts";
import { readPythonCall } from "./python-call.ts";

export class PythonicParser implements ReplyParser {
  #calls = 0;
  #phase: "start" | "call" | "after" | "end" | "content" = "start";
  #held = "";
  /** Length of the held text when a call was last found incomplete. It is read again once the text has grown. */
  #triedLength = 0;

  push(text: string): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    this.#held += text;
    // By a fiftieth if the call may have ended. Otherwise arguments full of parentheses would be read once for each.
    const growth = text.includes(")") ? 1.02 : 2;
    if (this.#phase === "call" && this.#held.length < this.#triedLength * growth) return deltas;
    while (this.#step(deltas));
    return deltas;
  }

  finish(): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    this.#triedLength = 0;
    while (this.#step(deltas));
    const left = this.#held;
    this.#held = "";
    if (left !== "" && !(this.#calls > 0 && left.trim() === "")) deltas.push({ kind: "content", text: left });
    return deltas;
  }

  #step(deltas: ReplyDelta[]): boolean {
    const rest = this.#held.trimStart();
    switch (this.#phase) {
      case "start":
        // "[" alone could be any list: it stays part of the held text until a call was read.
        if (rest === "") return false;
        this.#phase = rest[0] === "[" ? "call" : "content";
        return true;
      case "call":
        return this.#call(rest, deltas);
      case "after":
        if (rest === "") return false;
        if (rest[0] !== "," && rest[0] !== "]") this.#phase = "content";
        else {
          this.#phase = rest[0] === "," ? "call" : "end";
          this.#held = rest.slice(1);
        }
        return true;
      case "end":
        if (rest === "") return false;
        this.#phase = "content";
        return true;
      default:
        if (this.#held !== "") deltas.push({ kind: "content", text: this.#held });
        this.#held = "";
        return false;
    }
  }

  #call(rest: string, deltas: ReplyDelta[]): boolean {
    const call = readPythonCall(rest, this.#calls === 0 ? 1 : 0);
    if (call === "partial") {
      this.#triedLength = this.#held.length;
      return false;
    }
    this.#triedLength = 0;
    if (call === "mismatch") {
      this.#phase = "content";
      return true;
    }
    deltas.push({ kind: "tool_call", index: this.#calls++, name: call.name, argumentsText: call.argumentsText });
    this.#held = rest.slice(call.end);
    this.#phase = "after";
    return true;
  }
}
