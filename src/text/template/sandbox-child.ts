// The process that renders templates from requests: one job at a time, as plain messages. It holds nothing worth
// stealing (no environment, no files are read) and may be killed at any moment.

import { ChatTemplate } from "../chat-template.ts";
import { PromptError } from "../prompt-error.ts";
import type { SandboxJob, SandboxMessage } from "./sandbox.ts";

const limits = { maxSteps: 1_000_000, maxText: 4_000_000, maxItems: 100_000, maxTotalText: 64_000_000 };

process.on("message", ({ source, input }: SandboxJob) => {
  let answer: SandboxMessage;
  try {
    answer = { kind: "text", text: new ChatTemplate(source).render(input, limits) };
  } catch (error) {
    if (!(error instanceof PromptError)) throw error;
    answer = { kind: "error", code: error.code, param: error.param, message: error.message };
  }
  process.send?.(answer);
});

process.on("disconnect", () => process.exit(0));
process.send?.({ kind: "ready" } satisfies SandboxMessage);
