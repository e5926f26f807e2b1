// What a client sent for a job, kept as it was: a line per trajectory, then one for its group, and a row per group that
// sums it up. An example of a supervised job is a group of one, without a line of its own for the group.

import type { TakeBytes } from "../account.ts";
import type { SftExample } from "../data/prepare-sft.ts";
import { type HistoryItem, type HistoryMessage, messageOf, type Trajectory } from "../data/trajectory.ts";
import { LineFileWriter } from "./line-file.ts";

export interface SentRow {
  /** Number of the group's first line. */
  line: number;
  /** Number of its trajectories. */
  size: number;
  /** The beginning of the user turn that the first sampled reply answers. */
  task: string | null;
  rewards: number[];
  /** The policy steps that its trajectories began with. Absent in records of earlier versions, and for an example. */
  versions?: (number | null)[];
  notes: GroupNotes;
}

/** What a list of groups shows besides rewards. */
export interface GroupNotes {
  /** Failed rollouts. */
  exceptions: { type: string | null; message: string }[];
  /** null = none, or too large for a list. */
  metadata: unknown;
  logs: unknown;
}

const TASK_CHARS = 200;
const NO_NOTES: GroupNotes = { exceptions: [], metadata: null, logs: null };

export class SentWriter {
  readonly #file: LineFileWriter;
  #task: string | null = null;
  #rewards: number[] = [];
  #versions: (number | null)[] = [];

  private constructor(file: LineFileWriter) {
    this.#file = file;
  }

  static async create(path: string, take: TakeBytes): Promise<SentWriter> {
    return new SentWriter(await LineFileWriter.create(path, take));
  }

  /** Written so far. */
  get bytes(): number {
    return this.#file.bytes;
  }

  /** `text`: the JSON of the client. The group of a trajectory follows the last of them. */
  async trajectory(text: string, { reward, histories, initialPolicyVersion }: Trajectory): Promise<void> {
    this.#task ??= taskOf(asked(histories[0]?.items ?? []));
    this.#rewards.push(reward);
    this.#versions.push(initialPolicyVersion);
    await this.#file.line(text);
  }

  async group(text: string, notes: GroupNotes): Promise<void> {
    const size = this.#rewards.length;
    const [rewards, versions] = [this.#rewards, this.#versions];
    const row = { line: this.#file.lines - size, size, task: this.#task, rewards, versions, notes };
    this.#task = null;
    this.#rewards = [];
    this.#versions = [];
    await this.#file.line(text);
    await this.#row(row);
  }

  async example(text: string, { messages }: SftExample): Promise<void> {
    const row = { line: this.#file.lines, size: 1, task: taskOf(messages), rewards: [], notes: NO_NOTES };
    await this.#file.line(text);
    await this.#row(row);
  }

  finish(): Promise<void> {
    return this.#file.finish();
  }

  abandon(): Promise<void> {
    return this.#file.abandon();
  }

  #row(row: SentRow): Promise<void> {
    return this.#file.row(JSON.stringify(row));
  }
}

/** What comes before the first sampled reply: replies that were only sent along were not rated. */
function asked(items: readonly HistoryItem[]): HistoryMessage[] {
  const first = items.findIndex((item) => "choice" in item);
  return items.slice(0, first < 0 ? items.length : first).map(messageOf);
}

/** The last of the user's turns. */
function taskOf(messages: readonly HistoryMessage[]): string | null {
  const turn = messages.findLast(({ role }) => role === "user");
  // cuts no character in two
  return turn ? [...turn.texts.join("\n").slice(0, 2 * TASK_CHARS)].slice(0, TASK_CHARS).join("") : null;
}
