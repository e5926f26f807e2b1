// What the server says about itself, for placeholders and bounds.
import { computed } from "@preact/signals";
import { models } from "./models.ts";

export interface ServerFacts {
  limits: { max_model_len: number };
  sampling_defaults: Record<string, number | null>;
}

/** Null until the server has told. */
export const facts = computed<ServerFacts | null>(() => {
  const length = models.value[0]?.max_model_len;
  return length == null ? null : { limits: { max_model_len: length }, sampling_defaults: {} };
});
