// Rules for the fields that chat and text completions share. sampling-bounds.ts has the bounds of sampling fields.
import { ServiceError } from "../../errors/service-error.ts";
import type { SharedFields } from "./sampling.schema.ts";

/** Other fields accept numbers written as strings; these do not. `source` is the body before parsing. */
export function checkLogprobSpelling(source: Record<string, unknown>): void {
  for (const param of ["top_logprobs", "prompt_logprobs"]) {
    if (typeof source[param] === "string") {
      throw new ServiceError("invalid_value", `${param} must be an integer, not a string.`, { param });
    }
  }
}

/** `options` is stream_options as sent, including unknown keys. */
export function checkStream(body: Pick<SharedFields, "stream" | "prompt_logprobs">, options: unknown): void {
  if (Object.keys(options ?? {}).length > 0 && body.stream !== true) {
    throw new ServiceError("invalid_combination", "stream_options needs stream: true.", { param: "stream_options" });
  }
  const param = "prompt_logprobs";
  const count = body.prompt_logprobs ?? 0;
  if (count !== 0 && body.stream === true) {
    throw new ServiceError("invalid_combination", `${param} is not available with stream: true.`, { param });
  }
  if (count < -1) {
    throw new ServiceError("invalid_value", `${param} must be 0 or more, or -1 for the whole vocabulary.`, { param });
  }
}

/** An empty stop string would match everywhere. */
export function checkStops(stop: SharedFields["stop"]): void {
  if ([stop].flat().includes("")) throw new ServiceError("invalid_value", "stop must not contain an empty string.");
}

export function checkPriority({ priority }: Pick<SharedFields, "priority">, policy: "priority" | "fcfs"): void {
  if (policy === "fcfs" && (priority ?? 0n) !== 0n) {
    const message = "priority must be 0: this server schedules first come, first served.";
    throw new ServiceError("priority_unavailable", message, { param: "priority" });
  }
}
