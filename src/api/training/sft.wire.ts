// SFT jobs from the wire: example conversations and their configuration.

import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import { SFT_DEFAULTS, type SftConfig } from "../../training/config.ts";
import type { SftExample } from "../../training/data/prepare-sft.ts";
import { messageFrom } from "./choice.wire.ts";
import { Fields } from "./fields.ts";
import type { Issues, Loc } from "./issues.ts";

/** `{messages, tools?}`; the last message must be the assistant's. */
export function exampleFrom(value: unknown, loc: Loc, issues: Issues): SftExample {
  if (!isJsonObject(value)) {
    issues.add(loc, "dict_type", "Input should be a valid dictionary", value);
    return { messages: [], tools: null };
  }
  const fields = new Fields(value, loc, issues);
  const messages = fields.objects("messages").map((m) => {
    if (typeof m.object.role !== "string") new Fields(m.object, m.loc, issues).missing("role");
    return messageFrom(m.object, m.loc, issues);
  });
  if (fields.raw("messages") === undefined) fields.missing("messages");
  else if (messages.at(-1)?.role !== "assistant") {
    fields.problem("messages", "value_error", "Value error, the last message must have the role assistant");
  }
  return { messages, tools: fields.tools("tools") };
}

export function sftConfigFrom(object: JsonObject | null, loc: Loc, issues: Issues): SftConfig {
  const fields = new Fields(object ?? {}, loc, issues);
  const batchSize = fields.raw("batch_size") === "auto" ? null : fields.integer("batch_size", { min: 1 });
  const rates = Array.isArray(fields.raw("learning_rate")) ? learningRates(fields, issues) : null;
  const rate = rates ? null : fields.number("learning_rate", { min: 0 });
  return {
    optimizer: { ...SFT_DEFAULTS.optimizer, learningRate: rate ?? SFT_DEFAULTS.optimizer.learningRate },
    batchSize: batchSize ?? SFT_DEFAULTS.batchSize,
    learningRates: rates,
    assistantTurns: fields.oneOf("assistant_turns", ["all", "last"]) ?? SFT_DEFAULTS.assistantTurns,
    seed: SFT_DEFAULTS.seed,
  };
}

/** One rate per batch; the last one goes on when there are more batches. */
function learningRates(fields: Fields, issues: Issues): number[] | null {
  const list = fields.array("learning_rate")!;
  const bad = list.findIndex((rate) => typeof rate !== "number" || !Number.isFinite(rate) || rate < 0);
  if (bad >= 0) {
    issues.add([...fields.at("learning_rate"), bad], "float_type", "Input should be a valid number", list[bad]);
  }
  return list.length === 0 ? null : (list as number[]);
}
