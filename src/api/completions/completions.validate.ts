// Checks text completion requests: the four forms of a prompt and the rules between fields.
import { ServiceError } from "../../errors/service-error.ts";
import { checkLogprobSpelling, checkPriority, checkStops, checkStream } from "../request/field-rules.ts";
import { readBody } from "../request/read-body.ts";
import { type CompletionBody, CompletionRequest } from "./completions.schema.ts";

/** A prompt as text or as token ids. */
export type Prompt = string | readonly number[];

export interface ValidatedCompletion {
  body: CompletionBody;
  prompts: Prompt[];
  ignored: string[];
}

const MAX_PROMPTS = 1024;

export function validateCompletion(raw: unknown, rules: { policy: "priority" | "fcfs" }): ValidatedCompletion {
  const source = (typeof raw === "object" && raw !== null ? raw : {}) as Record<string, unknown>;
  checkLogprobSpelling(source);
  const { value: body, ignored } = readBody(CompletionRequest, raw ?? null);
  const prompts = readPrompts(body.prompt);
  if (body.suffix !== undefined && body.suffix !== null && body.suffix !== "") {
    throw new ServiceError("invalid_value", "suffix is not supported.", { param: "suffix" });
  }
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkPriority(body, rules.policy);
  if ((body.logprobs ?? 0) < 0) {
    throw new ServiceError("invalid_value", "logprobs must be 0 or more.", { param: "logprobs" });
  }
  if (body.max_tokens === 0 && body.echo !== true) {
    throw new ServiceError("invalid_value", "max_tokens must be at least 1, or 0 together with echo.", {
      param: "max_tokens",
    });
  }
  if (body.max_tokens === 0 && (body.logprob_token_ids ?? []).length > 0) {
    const message = "logprob_token_ids needs output, but with max_tokens: 0 no output tokens are generated.";
    throw new ServiceError("invalid_combination", message, { param: "logprob_token_ids" });
  }
  return { body, prompts, ignored };
}

function readPrompts(prompt: CompletionBody["prompt"]): Prompt[] {
  if (prompt.length === 0) throw new ServiceError("invalid_value", "prompt must not be empty.", { param: "prompt" });
  if (typeof prompt === "string") return [prompt];
  if (typeof prompt[0] === "number") return [prompt as number[]];
  if (prompt.length > MAX_PROMPTS) {
    throw new ServiceError("invalid_value", `prompt has more than ${MAX_PROMPTS} entries.`, { param: "prompt" });
  }
  return prompt as (string | number[])[];
}
