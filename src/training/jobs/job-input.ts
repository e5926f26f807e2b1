// The submitted data of a job on disk: one example, trajectory or group as JSON per line. It is written as it arrives,
// synced before the job is accepted, and read back line by line, so a large job never has to fit in memory.

import { createReadStream, existsSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { linesOf } from "../../json/json.ts";
import type { TakeBytes } from "../account.ts";
import type { GroupPart, Trajectory, TrajectoryGroup } from "../data/trajectory.ts";

const BUFFER_BYTES = 1 << 20;

export class InputWriter {
  readonly #file: FileHandle;
  readonly #take: TakeBytes;
  #bytes = 0;
  #pending: string[] = [];
  #pendingLength = 0;

  private constructor(file: FileHandle, take: TakeBytes) {
    this.#file = file;
    this.#take = take;
  }

  static async create(path: string, take: TakeBytes): Promise<InputWriter> {
    return new InputWriter(await open(path, "wx", 0o600), take);
  }

  /** So far. */
  get bytes(): number {
    return this.#bytes;
  }

  async append(item: unknown): Promise<void> {
    const line = `${JSON.stringify(item)}\n`;
    const bytes = Buffer.byteLength(line);
    await this.#take(bytes);
    this.#bytes += bytes;
    this.#pending.push(line);
    this.#pendingLength += line.length;
    if (this.#pendingLength >= BUFFER_BYTES) await this.#flush();
  }

  /** Closes the file. Its content is on disk when this returns. */
  async finish(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
    await this.#file.close();
  }

  /** Closes the file without writing the rest. The caller deletes it. */
  async abandon(): Promise<void> {
    this.#pending = [];
    await this.#file.close().catch(() => {});
  }

  async #flush(): Promise<void> {
    const text = this.#pending.join("");
    this.#pending = [];
    this.#pendingLength = 0;
    if (text !== "") await this.#file.appendFile(text);
  }
}

/** Reads the items in order, one line at a time. */
export async function* readInput<Item>(path: string): AsyncGenerator<Item> {
  if (!existsSync(path) && existsSync(join(dirname(path), "input.jsonl"))) {
    throw new Error(
      "The job was submitted to an earlier version of this server, which stored it differently: submit it again.",
    );
  }
  for await (const line of linesOf(createReadStream(path, { encoding: "utf8" }))) {
    if (line !== "") yield JSON.parse(line) as Item;
  }
}

/** Reads groups and joins the parts of each. */
export async function* readGroups(path: string): AsyncGenerator<TrajectoryGroup> {
  let before: Trajectory[] = [];
  for await (const part of readInput<GroupPart>(path)) {
    if ("histories" in part) before.push(part);
    else {
      yield { ...part, trajectories: [...before, ...part.trajectories] };
      before = [];
    }
  }
}
