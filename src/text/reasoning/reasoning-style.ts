// How a model marks its reasoning, by name or by its chat template, and whether a prompt ends inside a thought.

import { OperatorError } from "../../errors/faults.ts";

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
