// What a client sent becomes the job's record, and a record becomes what a client sent.

import { writeExactJson } from "../../json/exact-json.ts";
import { isJsonObject } from "../../json/json.ts";
import type { SftExample } from "../../training/data/prepare-sft.ts";
import type { GroupPart } from "../../training/data/trajectory.ts";
import type { SentText } from "../../training/records/record-reader.ts";
import type { GroupNotes, SentWriter } from "../../training/records/sent-record.ts";
import type { JsonItem } from "./json-stream.ts";
import { parseValue } from "./json-value.ts";
import type { NewReward } from "./training.schema.ts";
import { invalid } from "./validation.ts";

/** In a list of groups. One trajectory shows all of it. */
const MOST_EXCEPTIONS = 100;
const MESSAGE_CHARS = 500;
const NOTE_CHARS = 4096;

/** Beside this is what the server read from it. */
export async function keepGroupPart(record: SentWriter, item: JsonItem, part: GroupPart): Promise<void> {
  const text = item.text ?? writeExactJson(item.value);
  if ("histories" in part) await record.trajectory(text, part);
  else await record.group(text, notesOf(item.value));
}

export async function keepExample(record: SentWriter, item: JsonItem, example: SftExample): Promise<void> {
  await record.example(item.text ?? writeExactJson(item.value), example);
}

/** The items that were sent as `field`, with the same paths. */
export async function* sentItems(texts: AsyncIterable<SentText>, field: string): AsyncGenerator<JsonItem> {
  for await (const { group, trajectory, text } of texts) {
    const path =
      field === "trajectory_groups" && trajectory !== null
        ? [field, group, "trajectories", trajectory]
        : [field, group];
    yield { path, value: parseValue(text), text };
  }
}

/** The items of a job with other rewards for some trajectories. Throws if one of these is not among them. */
export async function* withRewards(
  items: AsyncIterable<JsonItem>,
  rewards: readonly NewReward[],
): AsyncGenerator<JsonItem> {
  const waiting = new Map(rewards.map(({ group, trajectory, reward }) => [`${group}/${trajectory}`, reward]));
  for await (const item of items) {
    const place = `${item.path[1]}/${item.path[3]}`;
    const reward = waiting.get(place);
    if (reward === undefined || !isJsonObject(item.value)) {
      yield item;
      continue;
    }
    waiting.delete(place);
    yield { path: item.path, value: { ...item.value, reward }, text: null };
  }
  const [unknown] = waiting.keys();
  if (unknown === undefined) return;
  const [group, trajectory] = unknown.split("/");
  throw invalid(
    ["body", "rewards"],
    "value_error",
    `Value error, that job has no trajectory ${trajectory} in group ${group}`,
  );
}

export interface RolloutException {
  type: string | null;
  message: string;
}

/** As ART sends them, {type, message, traceback}, or any other value. */
export function exceptionsOf(group: unknown): RolloutException[] {
  const exceptions = isJsonObject(group) && Array.isArray(group.exceptions) ? group.exceptions : [];
  return exceptions.map((exception) => {
    if (typeof exception === "string") return { type: null, message: exception };
    if (!isJsonObject(exception)) return { type: null, message: JSON.stringify(exception) };
    const { type, message, ...rest } = exception;
    return {
      ...rest,
      type: typeof type === "string" ? type : null,
      message: typeof message === "string" ? message : "",
    };
  });
}

function notesOf(group: unknown): GroupNotes {
  const { metadata, logs } = isJsonObject(group) ? group : {};
  const exceptions = exceptionsOf(group).slice(0, MOST_EXCEPTIONS);
  return {
    exceptions: exceptions.map(({ type, message }) => ({
      type: type?.slice(0, MESSAGE_CHARS) ?? null,
      message: message.slice(0, MESSAGE_CHARS),
    })),
    metadata: ifSmall(metadata),
    logs: ifSmall(logs),
  };
}

function ifSmall(value: unknown): unknown {
  return value !== undefined && JSON.stringify(value).length <= NOTE_CHARS ? value : null;
}
