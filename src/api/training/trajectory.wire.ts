// Trajectory groups from the wire to the trainer's compact form. Accepts what clients really send: everything spelled
// out with nulls, defaults left out, choices as plain objects, log-probabilities on plain assistant messages, captured
// exchanges. Told apart by shape: an object with `message` is a choice, one with `role` is a message.

import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { GroupPart, History, HistoryItem, Trajectory } from "../../training/data/trajectory.ts";
import { choiceFrom, choiceOfMessage, messageFrom } from "./choice.wire.ts";
import { exchangeHistories } from "./exchange.wire.ts";
import { AVERAGEABLE, Fields } from "./fields.ts";
import type { Issues, Loc } from "./issues.ts";
import type { Streamed } from "./json-items.ts";

/** A group of long trajectories takes seconds to read as one: they are read one by one. */
export const GROUP_PARTS: Streamed = { trajectory_groups: { trajectories: null } };

/** One of a group's trajectories, or the group behind the last of them, with none of its own. */
export function groupPartFrom(value: unknown, loc: Loc, issues: Issues): GroupPart {
  const object = isJsonObject(value) ? value : {};
  if (object !== value) issues.add(loc, "dict_type", "Input should be a valid dictionary", value);
  const fields = new Fields(object, loc, issues);
  if (loc.at(-2) === "trajectories") return trajectoryFrom(fields, issues);
  fields.array("trajectories");
  return {
    trajectories: [],
    exceptions: fields.array("exceptions")?.length ?? 0,
    metrics: fields.metrics("metrics"),
  };
}

function trajectoryFrom(fields: Fields, issues: Issues): Trajectory {
  // read for their types only
  fields.object("metadata");
  fields.array("logs");
  fields.text("start_time");
  fields.integer("final_policy_version");
  return {
    histories: exchangeHistories(fields, issues) ?? [
      historyFrom(fields, issues),
      ...fields.objects("additional_histories").map(({ object, loc }) => {
        const history = new Fields(object, loc, issues);
        if (history.raw("messages_and_choices") === undefined) history.missing("messages_and_choices");
        return historyFrom(history, issues);
      }),
    ],
    reward: fields.number("reward", AVERAGEABLE) ?? 0,
    initialPolicyVersion: fields.integer("initial_policy_version"),
    metrics: fields.metrics("metrics"),
  };
}

function historyFrom(fields: Fields, issues: Issues): History {
  const items = fields
    .objects("messages_and_choices")
    .flatMap(({ object, loc }) => itemFrom(object, loc, issues) ?? []);
  return { items, tools: fields.tools("tools") };
}

function itemFrom(object: JsonObject, loc: Loc, issues: Issues): HistoryItem | null {
  const hasRole = object.role !== undefined && object.role !== null;
  const hasMessage = isJsonObject(object.message);
  if (hasRole === hasMessage) {
    const problem = hasRole
      ? "both a message (role) and a choice (message)"
      : "neither a message (role) nor a choice (message)";
    issues.add(loc, "value_error", `Value error, the element is ${problem}`);
    return null;
  }
  if (hasMessage) return { choice: choiceFrom(object, loc, issues) };
  const message = messageFrom(object, loc, issues);
  return choiceOfMessage(object, message, loc, issues) ?? { message };
}
