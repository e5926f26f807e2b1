// The process that renders templates for sandbox.ts: one job at a time, as plain messages. It holds nothing worth stealing
// (it has no environment and reads no files) and may be killed at any moment.

import { ChatTemplate } from "../chat-template.ts";
import { PromptError } from "../prompt-error.ts";
import type { RenderJob, RenderMessage } from "./sandbox.ts";

/** For templates that are not trusted. */
const LIMITS = { maxSteps: 1_000_000, maxText: 4_000_000, maxItems: 100_000, maxTotalText: 64_000_000 };

let last: ChatTemplate | null = null;

process.on("message", ({ source, contentFormat, input, isTrusted }: RenderJob) => {
  let answer: RenderMessage;
  try {
    if (last?.source !== source) last = new ChatTemplate(source, contentFormat);
    answer = { kind: "text", text: last.render(input, isTrusted ? undefined : LIMITS) };
  } catch (error) {
    if (!(error instanceof PromptError)) throw error;
    answer = { kind: "error", code: error.code, param: error.param, message: error.message };
  }
  process.send?.(answer);
});

process.on("disconnect", () => process.exit(0));
process.send?.({ kind: "ready" } satisfies RenderMessage);
