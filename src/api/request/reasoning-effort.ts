// How much a model should think, in the words of OpenAI's and Anthropic's APIs. Templates know low, medium and high.
import { Type } from "typebox";

export const ReasoningEffort = Type.Enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

const EFFORTS = { minimal: "low", low: "low", medium: "medium", high: "high", xhigh: "high", max: "high" } as const;

interface EffortFields {
  reasoning_effort?: "low" | "medium" | "high" | null;
  chat_template_kwargs?: Record<string, unknown> | null;
}

/** "none" turns thinking off, unless the template variables say otherwise. */
export function effortFields(
  effort: keyof typeof EFFORTS | "none" | null | undefined,
  kwargs: Record<string, unknown> | null | undefined,
): EffortFields {
  if (effort === "none") return { chat_template_kwargs: { enable_thinking: false, ...kwargs } };
  return {
    ...(effort === undefined ? {} : { reasoning_effort: effort === null ? null : EFFORTS[effort] }),
    ...(kwargs === undefined ? {} : { chat_template_kwargs: kwargs }),
  };
}
