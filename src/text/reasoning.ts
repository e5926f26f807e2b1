// Reasoning in a reply: how models mark it, whether a prompt has begun it, and the parser that takes it out.
import { OperatorError } from "../errors/faults.ts";
import type { ReplyDelta, ReplyParser } from "./reply-parser.ts";

// How a model marks its reasoning, by name or by its chat template, and whether a prompt ends inside a thought.

export interface ReasoningStyle {
  readonly start: string;
  readonly end: string;
  /** Output without a start marker is reasoning until the end marker comes (DeepSeek R1); else it is the answer. */
  readonly assumed: boolean;
}

/** "open": the output continues a thought. "optional": it may begin with one. "closed": it is the answer. */
export type ReasoningState = "open" | "optional" | "closed";

const think = { start: "<think>", end: "</think>" };

const styles: Record<string, ReasoningStyle> = {
  think: { ...think, assumed: false },
  qwen3: { ...think, assumed: false },
  deepseek_r1: { ...think, assumed: true },
};

/** What `--reasoning-parser` takes. */
export const REASONING_PARSERS = ["auto", "none", ...Object.keys(styles)];

/** `name`: what the operator asked for; "auto" = from the template, "none" = never. */
export function reasoningStyle(name: string, chatTemplate: string | null): ReasoningStyle | null {
  if (name === "none") return null;
  if (name === "auto") {
    return chatTemplate?.includes(think.start) && chatTemplate.includes(think.end) ? styles.think! : null;
  }
  if (!Object.hasOwn(styles, name)) {
    const known = REASONING_PARSERS.join(", ");
    throw new OperatorError(`--reasoning-parser: there is no parser "${name}"; known: ${known}`);
  }
  return styles[name]!;
}

export interface PromptEnd {
  /** The rendered prompt, or at least its last few hundred characters. */
  prompt: string;
  /** The text of the message being continued (continue_final_message), else null. */
  continued: string | null;
  /** The caller switched thinking off (enable_thinking: false). */
  disabled: boolean;
}

export function reasoningState(style: ReasoningStyle, { prompt, continued, disabled }: PromptEnd): ReasoningState {
  if (continued !== null && continued !== "") {
    return continued.includes(style.start) && !continued.includes(style.end) ? "open" : "closed";
  }
  const tail = prompt.trimEnd();
  if (tail.endsWith(style.start)) return "open";
  if (disabled || tail.endsWith(style.end)) return "closed";
  return style.assumed ? "open" : "optional";
}

// Splits reasoning from the answer while the text streams. Line breaks next to the markers belong to neither side. The
// answer goes through the next parser (tool calls, or plain).

export class ReasoningParser implements ReplyParser {
  readonly #style: ReasoningStyle;
  readonly #answer: ReplyParser;
  /** "start": a start marker may still come; "thought"; "gap": line breaks before the answer; "answer". */
  #phase: "start" | "thought" | "gap" | "answer";
  /** In the "start" phase: does text without a marker belong to the thought? */
  readonly #open: boolean;
  /** Text that could still turn out to be (part of) a marker, or line breaks before one. */
  #held = "";
  /** Nothing of the thought was emitted yet, so its leading line breaks are dropped. */
  #thoughtEmpty = true;
  #thought = false;

  constructor(style: ReasoningStyle, state: ReasoningState, answer: ReplyParser) {
    this.#style = style;
    this.#answer = answer;
    this.#open = state === "open";
    this.#thought = this.#open;
    this.#phase = state === "closed" ? "answer" : "start";
  }

  /** True until the end marker has come: the tokens so far belong to the reasoning. */
  get reasoning(): boolean {
    return this.#phase === "thought" || (this.#phase === "start" && this.#open);
  }

  /** There is or was a thought, empty or not. */
  get hasThought(): boolean {
    return this.#thought;
  }

  push(text: string): ReplyDelta[] {
    if (this.#phase === "answer") return this.#answer.push(text);
    this.#held += text;
    const deltas: ReplyDelta[] = [];
    if (this.#phase === "start") this.#start(deltas);
    if (this.#phase === "thought") this.#think(deltas);
    if (this.#phase === "gap") this.#gap(deltas);
    return deltas;
  }

  finish(): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    const held = this.#held;
    this.#held = "";
    if (this.#phase === "thought" || (this.#phase === "start" && this.#open)) this.#emitThought(held, deltas);
    else if (this.#phase === "start") deltas.push(...this.#answer.push(held));
    return [...deltas, ...this.#answer.finish()];
  }

  #start(deltas: ReplyDelta[]): void {
    const { start } = this.#style;
    const rest = this.#held.trimStart();
    if (rest.length < start.length && start.startsWith(rest)) return;
    if (rest.startsWith(start)) {
      this.#held = rest.slice(start.length);
      this.#phase = "thought";
      this.#thought = true;
    } else if (this.#open) {
      this.#phase = "thought";
    } else {
      this.#phase = "answer";
      deltas.push(...this.#answer.push(this.#held));
      this.#held = "";
    }
  }

  #think(deltas: ReplyDelta[]): void {
    const { end } = this.#style;
    const found = this.#held.indexOf(end);
    if (found >= 0) {
      this.#emitThought(this.#held.slice(0, found).replace(/\n+$/, ""), deltas);
      this.#held = this.#held.slice(found + end.length);
      this.#phase = "gap";
      return;
    }
    // Holds back what may be the beginning of the end marker, and the line breaks before it.
    let keep = markerPrefix(this.#held, end);
    while (keep < this.#held.length && this.#held[this.#held.length - keep - 1] === "\n") keep++;
    this.#emitThought(this.#held.slice(0, this.#held.length - keep), deltas);
    this.#held = this.#held.slice(this.#held.length - keep);
  }

  #gap(deltas: ReplyDelta[]): void {
    const answer = this.#held.replace(/^\n+/, "");
    this.#held = "";
    if (answer === "") return;
    this.#phase = "answer";
    deltas.push(...this.#answer.push(answer));
  }

  #emitThought(text: string, deltas: ReplyDelta[]): void {
    const shown = this.#thoughtEmpty ? text.replace(/^\n+/, "") : text;
    if (shown === "") return;
    this.#thoughtEmpty = false;
    deltas.push({ kind: "reasoning", text: shown });
  }
}

/** Length of the longest end of `text` that is a beginning (not the whole) of `marker`. */
export function markerPrefix(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}
