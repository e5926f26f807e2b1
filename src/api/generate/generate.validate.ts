// Checks generate requests, and brings their fields into the flat form that the other dialects have.
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import { checkLogprobSpelling, checkPriority, checkStops, checkStream } from "../request/field-rules.ts";
import { readBody } from "../request/read-body.ts";
import { stopList } from "../run/run-builder.ts";
import { type TokenBody, TokenRequest } from "./generate.schema.ts";

export type TokenFields = ReturnType<typeof flat>;

export interface ValidatedTokens {
  body: TokenFields;
  ignored: string[];
}

export function validateTokens(raw: unknown, rules: { policy: "priority" | "fcfs" }): ValidatedTokens {
  const source = isJsonObject(raw) ? raw : {};
  checkLogprobSpelling(isJsonObject(source.sampling_params) ? source.sampling_params : {});
  const { value, ignored } = readBody(TokenRequest, raw ?? null);
  const body = flat(value);
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkPriority(body, rules.policy);
  if (stopList(body.stop).length > 0 && body.detokenize === false) {
    const message = "stop needs detokenize: true, because stop strings are looked for in the text.";
    throw new ServiceError("invalid_combination", message, { param: "stop" });
  }
  if ((body.logprobs ?? 0) < -1) {
    throw new ServiceError("invalid_value", "logprobs must be 0 or more, or -1 for the whole vocabulary.", {
      param: "logprobs",
    });
  }
  return { body, ignored };
}

/** vLLM's engine looks for kv_transfer_params in extra_args, so clients send them in either place. */
function flat({ sampling_params: sampling, ...body }: TokenBody) {
  const { extra_args: extra, bad_words: badWords, ...params } = sampling;
  const { kv_transfer_params: kvTransfer, ...args } = extra ?? {};
  return {
    ...params,
    ...body,
    bad_words: badWords ?? [],
    kv_transfer_params: body.kv_transfer_params ?? (isJsonObject(kvTransfer) ? kvTransfer : null),
    engine_xargs: args,
  };
}
