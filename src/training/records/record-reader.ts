// Reads the record of a job: pages of groups, one trajectory, or everything that was sent.
import { isJsonObject } from "../../json/json.ts";
import type { LineFile } from "./line-file.ts";
import type { KeptSequence, PreparedRow, RolloutVerdict } from "./prepared-record.ts";
import type { SentRow } from "./sent-record.ts";

// Finds a text in what was said in a trajectory or an example.

/** Where messages are: those of a trajectory, its other histories, and those of an example. */
const HISTORIES = ["messages_and_choices", "additional_histories", "messages"];

/** Fields of messages and choices that nobody said. Tokens are in `logprobs` a second time. */
const UNSAID = new Set(["logprobs", "role", "id", "tool_call_id", "type", "object", "finish_reason"]);

/** `json`: as it was sent. `wanted`: in lower case. */
export function isSaid(json: string, wanted: string): boolean {
  const sent: unknown = JSON.parse(json);
  // A list instead of recursion: what was sent may be nested deeply.
  const open: unknown[] = isJsonObject(sent) ? HISTORIES.map((name) => sent[name]) : [];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") {
      if (value.toLowerCase().includes(wanted)) return true;
    } else if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (isJsonObject(value)) {
      for (const [name, field] of Object.entries(value)) if (!UNSAID.has(name)) open.push(field);
    }
  }
  return false;
}

export interface KeptGroup {
  group: number;
  sent: SentRow;
  /** One per trajectory; null before the job prepared its data. */
  rollouts: RolloutVerdict[] | null;
}

export interface KeptTrajectory {
  group: KeptGroup;
  /** The trajectory or example as JSON, as it was sent. */
  text: string;
  /** Its group likewise, without trajectories; null for an example. */
  groupText: string | null;
  verdict: RolloutVerdict | null;
  sequences: KeptSequence[];
}

/** `group` and `trajectory` are its indices; both are null for the fields of a group itself. */
export interface SentText {
  group: number;
  trajectory: number | null;
  text: string;
}

export class RecordReader {
  readonly #sent: LineFile;
  readonly #prepared: LineFile | null;

  constructor(sent: LineFile, prepared: LineFile | null) {
    this.#sent = sent;
    this.#prepared = prepared;
  }

  async close(): Promise<void> {
    await this.#sent.close();
    await this.#prepared?.close();
  }

  get groupCount(): number {
    return this.#sent.rowCount;
  }

  /** Groups [from, to), as far as there are so many. */
  async groups(from: number, to: number): Promise<KeptGroup[]> {
    const prepared = this.#prepared ? await all<PreparedRow>(this.#prepared.rows(from, to)) : [];
    const sent = await all<SentRow>(this.#sent.rows(from, to));
    return sent.map((row, i) => ({ group: from + i, sent: row, rollouts: prepared[i]?.tries ?? null }));
  }

  /** null if there is no such trajectory. */
  async trajectory(index: number, trajectory: number): Promise<KeptTrajectory | null> {
    const [group] = await this.groups(index, index + 1);
    if (!group || trajectory >= group.sent.size) return null;
    const { line, size, rewards } = group.sent;
    const isExample = rewards.length < size;
    const groupText = isExample ? null : await first(this.#sent.lines(line + size, line + size + 1));
    return {
      ...{ group, groupText, text: (await first(this.#sent.lines(line + trajectory, line + trajectory + 1)))! },
      verdict: group.rollouts?.[trajectory] ?? null,
      sequences: await this.#sequences(index, trajectory),
    };
  }

  /** Everything that was sent for groups [from, to), in order. */
  async *texts(from = 0, to = this.groupCount): AsyncGenerator<SentText> {
    let lines: AsyncGenerator<string> | undefined;
    let group = from;
    for await (const row of this.#sent.rows(from, to)) {
      const { line, size, rewards } = JSON.parse(row) as SentRow;
      lines ??= this.#sent.lines(line, this.#sent.lineCount);
      for (let trajectory = 0; trajectory < size; trajectory++) {
        yield { group, trajectory, text: (await lines.next()).value };
      }
      if (rewards.length === size) yield { group, trajectory: null, text: (await lines.next()).value };
      group++;
    }
  }

  /** The trajectories of groups [from, to) in which a text is said, by group. */
  async saying(text: string, from: number, to: number): Promise<Map<number, number[]>> {
    const wanted = text.toLowerCase();
    const found = new Map<number, number[]>();
    for await (const { group, trajectory, text } of this.texts(from, to)) {
      if (trajectory === null || !isSaid(text, wanted)) continue;
      const before = found.get(group);
      if (before) before.push(trajectory);
      else found.set(group, [trajectory]);
    }
    return found;
  }

  async #sequences(group: number, trajectory: number): Promise<KeptSequence[]> {
    const prepared = this.#prepared;
    const row = prepared && (await first(prepared.rows(group, group + 1)));
    if (!row) return [];
    const line = (JSON.parse(row) as PreparedRow).line + trajectory;
    return JSON.parse((await first(prepared.lines(line, line + 1))) ?? "[]") as KeptSequence[];
  }
}

async function all<T>(texts: AsyncGenerator<string>): Promise<T[]> {
  const values: T[] = [];
  for await (const text of texts) values.push(JSON.parse(text) as T);
  return values;
}

async function first(texts: AsyncGenerator<string>): Promise<string | null> {
  const { value, done } = await texts.next();
  await texts.return(undefined);
  return done ? null : value;
}
