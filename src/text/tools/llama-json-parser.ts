// Tool calls in the Llama 3 style: the reply is one JSON object {"name": …, "parameters": {…}}, or several, with semicolons, commas
// or space between them. A reply that does not begin like that is content.

import type { ReplyDelta, ReplyParser } from "../reply-parser.ts";
import { ObjectCallReader } from "./object-call-reader.ts";

const TAG = "<|python_tag|>";

export class LlamaJsonParser implements ReplyParser {
  #calls = 0;
  #phase: "start" | "call" | "between" | "content" = "start";
  /** Text that may be a call; it becomes content if it is not. */
  #held = "";
  /** What came before the call, content too if it is none. */
  #before = "";
  #reader: ObjectCallReader | null = null;

  push(text: string): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    this.#held += text;
    while (this.#step(deltas));
    return deltas;
  }

  finish(): ReplyDelta[] {
    const unread = this.#reader?.committed ? this.#reader.held : this.#before + (this.#reader?.held ?? "");
    const held = this.#phase === "call" ? unread : this.#held;
    this.#held = "";
    return held === "" || (this.#calls > 0 && held.replace(/[;,]\s*$/, "").trim() === "")
      ? []
      : [{ kind: "content", text: held }];
  }

  #step(deltas: ReplyDelta[]): boolean {
    switch (this.#phase) {
      case "start":
        return this.#start();
      case "call":
        return this.#call(deltas);
      case "between":
        return this.#between();
      default:
        if (this.#held !== "") deltas.push({ kind: "content", text: this.#held });
        this.#held = "";
        return false;
    }
  }

  #start(): boolean {
    const rest = this.#held.trimStart();
    if (rest === "" || (rest.length < TAG.length && TAG.startsWith(rest))) return false;
    const body = (rest.startsWith(TAG) ? rest.slice(TAG.length) : rest).trimStart();
    if (body === "") return false;
    if (body[0] === "{") this.#begin(body);
    else this.#phase = "content";
    return true;
  }

  #begin(text: string): void {
    this.#before = this.#held.slice(0, this.#held.length - text.length);
    this.#held = text;
    this.#reader = new ObjectCallReader(this.#calls, { marked: false });
    this.#phase = "call";
  }

  #call(deltas: ReplyDelta[]): boolean {
    if (this.#held === "") return false;
    const progress = this.#reader!.push(this.#held);
    deltas.push(...progress.deltas);
    this.#held = progress.left;
    if (progress.state === "reading") return false;
    if (progress.state === "done") this.#calls++;
    else this.#held = this.#before + this.#held;
    this.#phase = progress.state === "done" ? "between" : "content";
    return true;
  }

  /** Another call, or content. */
  #between(): boolean {
    const rest = this.#held.trimStart();
    const next = /^[;,]/.test(rest) ? rest.slice(1).trimStart() : rest;
    if (next === "") return false;
    if (next[0] === "{") this.#begin(next);
    else this.#phase = "content";
    return true;
  }
}
