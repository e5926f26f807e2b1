// Fields that a request gives once and that count for each of its prompts or conversations. The engine gets them with every one,
// so a small body could make as many copies as it has prompts. They may hold as much together as one body may.
import { ServiceError } from "../../errors/service-error.ts";
import { MAX_VALUES } from "../http/body.ts";
import type { SharedFields } from "./fields.schema.ts";

type Repeated = Partial<
  Pick<SharedFields, "logit_bias" | "stop" | "stop_token_ids" | "allowed_token_ids" | "logprob_token_ids" | "bad_words">
>;

/** `more`: further values that each prompt gets. */
export function checkRepeated(body: Repeated, prompts: number, more = 0): void {
  const texts = [body.stop ?? [], body.bad_words ?? []].flat();
  const ids = [body.stop_token_ids, body.allowed_token_ids, body.logprob_token_ids];
  const each =
    more +
    Object.keys(body.logit_bias ?? {}).length +
    ids.reduce((sum, list) => sum + (list ?? []).length, 0) +
    texts.reduce((sum, text) => sum + text.length, 0);
  if (prompts === 1 || each * prompts <= MAX_VALUES) return;
  const message =
    `logit_bias, bad_words, stop and lists of token ids have ${each} values and characters, for each of ${prompts} prompts. ` +
    `Together they may have ${MAX_VALUES}: send fewer prompts in one request.`;
  throw new ServiceError("invalid_value", message);
}
