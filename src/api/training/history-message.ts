// Reads messages of training data as chat does. A message that chat would refuse is kept with the reason: sampled
// tokens can be trained without it, and one bad message must not fail the whole job.

import type { JsonObject } from "../../json/json.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { HistoryMessage } from "../../training/data/trajectory.ts";
import { Message } from "../request/message.schema.ts";
import { chatMessage } from "../request/messages.ts";
import { Violations } from "../request/violations.ts";
import { readTraining } from "./validation.ts";

export function historyMessage(message: JsonObject & { role: string }): HistoryMessage {
  const violations = new Violations(1);
  const read = readTraining(Message, message, violations, []);
  const refused = (field: string, reason: string) => ({ role: message.role, texts: [], refusal: { field, reason } });
  if (read === undefined) {
    const { loc, msg } = violations.list[0]!;
    return refused(`.${loc.join(".")}`, msg);
  }
  try {
    return chatMessage(read, "");
  } catch (error) {
    if (error instanceof PromptError) return refused(error.param ?? "", error.message);
    throw error;
  }
}
