// Converts training data to the trainer's compact form. Items of a large body arrive one by one.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { SftExample } from "../../training/data/prepare-sft.ts";
import type { GroupPart, History, Trajectory } from "../../training/data/trajectory.ts";
import { chatTools } from "../request/messages.ts";
import type { Loc, Violations } from "../request/violations.ts";
import { EXCHANGE_KINDS, exchangeHistories } from "./exchange.wire.ts";
import { historyFrom, messageFrom } from "./history.wire.ts";
import type { Streamed } from "./json-items.ts";
import { ExampleBody, TrajectoryBody, TrajectoryGroupBody, type WireTrajectory } from "./trajectory.schema.ts";
import { readTraining } from "./validation.ts";

/** Reading a group of long trajectories at once takes seconds, so its trajectories are read one by one. */
export const GROUP_PARTS: Streamed = { trajectory_groups: { trajectories: null } };

/** A trajectory has captured exchanges or these fields, not both. */
const SPELLED_OUT = ["messages_and_choices", "tools", "additional_histories"];

/** Reads a trajectory, or the group itself, which follows its trajectories and arrives without them. */
export function groupPartFrom(value: unknown, loc: Loc, issues: Violations): GroupPart | undefined {
  if (loc.at(-2) === "trajectories") return trajectoryFrom(value, loc, issues);
  const group = readTraining(TrajectoryGroupBody, value, issues, loc);
  return group && { trajectories: [], exceptions: group.exceptions?.length ?? 0, metrics: group.metrics ?? {} };
}

function trajectoryFrom(value: unknown, loc: Loc, issues: Violations): Trajectory | undefined {
  const other = isJsonObject(value) ? besideExchanges(value) : undefined;
  if (other !== undefined) {
    issues.add([...loc, "exchanges"], "value_error", `Value error, give exchanges or ${other}, not both`);
    return undefined;
  }
  const read = readTraining(TrajectoryBody, value, issues, loc);
  return (
    read && {
      histories: exchangeHistories(read, loc, issues) ?? spelledOut(read, loc, issues),
      reward: read.reward ?? 0,
      initialPolicyVersion: read.initial_policy_version ?? null,
      metrics: read.metrics ?? {},
    }
  );
}

function spelledOut(trajectory: WireTrajectory, loc: Loc, issues: Violations): History[] {
  const { messages_and_choices: items, tools, additional_histories: more } = trajectory;
  return [
    historyFrom(items ?? [], tools, [...loc, "messages_and_choices"], issues),
    ...(more ?? []).map((history, i) => {
      const at = [...loc, "additional_histories", i, "messages_and_choices"];
      return historyFrom(history.messages_and_choices, history.tools, at, issues);
    }),
  ];
}

/** A field that conflicts with captured exchanges. Checked before the fields are read. */
function besideExchanges(trajectory: JsonObject): string | undefined {
  const { exchanges } = trajectory;
  const isCaptured = isJsonObject(exchanges) && EXCHANGE_KINDS.some((kind) => hasElements(exchanges, kind));
  return isCaptured ? SPELLED_OUT.find((field) => hasElements(trajectory, field)) : undefined;
}

function hasElements(object: JsonObject, field: string): boolean {
  const value = object[field];
  return Array.isArray(value) && value.length > 0;
}

export function exampleFrom(value: unknown, loc: Loc, issues: Violations): SftExample | undefined {
  const example = readTraining(ExampleBody, value, issues, loc);
  if (example === undefined) return undefined;
  const messages = example.messages.map(messageFrom);
  if (messages.at(-1)?.role !== "assistant") {
    const rule = "Value error, the last message must have the role assistant";
    issues.add([...loc, "messages"], "value_error", rule);
  }
  return { messages, tools: chatTools(example.tools) };
}
