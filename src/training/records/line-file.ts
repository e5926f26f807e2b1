// A file of JSON texts that can be read from the middle. It has two lists: lines, which may be long, and rows, which sum
// them up. Neighbours are gzipped together, at least MEMBER_CHARS of text at a time, so reading one text unzips little.
//   [gzip members of the lines] [gzip members of the rows] [table of members, JSON] [offset of the table, magic]
// Without the magic at its end, a file is not complete and does not count.

import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { TakeBytes } from "../account.ts";

const zip = promisify(gzip);
const unzip = promisify(gunzip);

const MEMBER_CHARS = 1 << 16;

/** The fastest level: a job's texts repeat so much that better ones gain little. */
const LEVEL = 1;

const MAGIC = "FLYLINE1";
const END_BYTES = 8 + MAGIC.length;

/** No JSON text contains it. A line may contain line feeds. */
const SEPARATOR = "\u001e";

/** The number of the first text in a member, and where its bytes are. */
type Member = [first: number, offset: number, bytes: number];

interface Table {
  lines: Member[];
  lineCount: number;
  rows: Member[];
  rowCount: number;
}

/** Texts that wait to be zipped together. */
class Pending {
  count = 0;
  #texts: string[] = [];
  #chars = 0;

  add(text: string): void {
    this.#texts.push(text);
    this.#chars += text.length;
    this.count++;
  }

  get isFull(): boolean {
    return this.#chars >= MEMBER_CHARS;
  }

  /** Takes everything that waits; null if nothing does. `first`: the number of the first text. */
  take(): { first: number; text: string } | null {
    if (this.#texts.length === 0) return null;
    const taken = { first: this.count - this.#texts.length, text: this.#texts.join(SEPARATOR) };
    this.#texts = [];
    this.#chars = 0;
    return taken;
  }
}

/** Zips in another thread, one member ahead of the caller. */
export class LineFileWriter {
  readonly #file: FileHandle;
  readonly #take: TakeBytes;
  readonly #lines = new Pending();
  readonly #rows = new Pending();
  readonly #lineMembers: Member[] = [];
  /** Zipped rows wait here for the last line. */
  readonly #zippedRows: { first: number; bytes: Buffer }[] = [];
  #offset = 0;
  #work: Promise<void> = Promise.resolve();

  private constructor(file: FileHandle, take: TakeBytes) {
    this.#file = file;
    this.#take = take;
  }

  /** `path` must not exist. */
  static async create(path: string, take: TakeBytes): Promise<LineFileWriter> {
    return new LineFileWriter(await open(path, "wx", 0o600), take);
  }

  /** Written so far. */
  get bytes(): number {
    return this.#offset;
  }

  /** Number of lines so far. */
  get lines(): number {
    return this.#lines.count;
  }

  async line(text: string): Promise<void> {
    this.#lines.add(text);
    if (this.#lines.isFull) await this.#zipLines();
  }

  async row(text: string): Promise<void> {
    this.#rows.add(text);
    if (this.#rows.isFull) await this.#zipRows();
  }

  async finish(): Promise<void> {
    await this.#zipLines();
    await this.#zipRows();
    await this.#work;
    const rows: Member[] = [];
    for (const { first, bytes } of this.#zippedRows) {
      rows.push([first, this.#offset, bytes.length]);
      await this.#write(bytes);
    }
    const table: Table = {
      ...{ lines: this.#lineMembers, lineCount: this.#lines.count },
      ...{ rows, rowCount: this.#rows.count },
    };
    const end = Buffer.alloc(END_BYTES);
    end.writeBigUInt64LE(BigInt(this.#offset));
    end.write(MAGIC, 8, "latin1");
    await this.#write(Buffer.concat([Buffer.from(JSON.stringify(table)), end]));
    await this.#file.close();
  }

  /** Closes the file as it is. The caller deletes it. */
  async abandon(): Promise<void> {
    await this.#work.catch(() => {});
    await this.#file.close().catch(() => {});
  }

  #zipLines(): Promise<void> {
    const taken = this.#lines.take();
    return this.#next(taken?.text, async (bytes) => {
      this.#lineMembers.push([taken!.first, this.#offset, bytes.length]);
      await this.#write(bytes);
    });
  }

  #zipRows(): Promise<void> {
    const taken = this.#rows.take();
    return this.#next(taken?.text, async (bytes) => {
      this.#zippedRows.push({ first: taken!.first, bytes });
    });
  }

  /** Resolves when the member before this one is done; rejects if it failed. */
  async #next(text: string | undefined, store: (bytes: Buffer) => Promise<void>): Promise<void> {
    if (text === undefined) return;
    const before = this.#work;
    const zipped = zip(text, { level: LEVEL });
    this.#work = Promise.all([before, zipped]).then(([, bytes]) => store(bytes));
    this.#work.catch(() => {}); // the next call reports it
    await before;
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.#take(bytes.length);
    await this.#file.appendFile(bytes);
    this.#offset += bytes.length;
  }
}

export class LineFile {
  readonly #file: FileHandle;
  readonly #table: Table;

  private constructor(file: FileHandle, table: Table) {
    this.#file = file;
    this.#table = table;
  }

  /** null if there is no such file, or it is not complete. Whoever opens it closes it. */
  static async open(path: string): Promise<LineFile | null> {
    const file = await openIfThere(path);
    if (!file) return null;
    try {
      const table = await readTable(file);
      if (table) return new LineFile(file, table);
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
    return null;
  }

  get lineCount(): number {
    return this.#table.lineCount;
  }

  get rowCount(): number {
    return this.#table.rowCount;
  }

  /** Texts [from, to), as far as there are so many. */
  lines(from: number, to: number): AsyncGenerator<string> {
    return this.#texts(this.#table.lines, this.#table.lineCount, from, to);
  }

  rows(from: number, to: number): AsyncGenerator<string> {
    return this.#texts(this.#table.rows, this.#table.rowCount, from, to);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async *#texts(members: readonly Member[], count: number, from: number, to: number): AsyncGenerator<string> {
    const end = Math.min(to, count);
    for (let i = memberOf(members, from); i < members.length && members[i]![0] < end; i++) {
      const [first, offset, bytes] = members[i]!;
      const texts = (await unzip(await readAt(this.#file, offset, bytes))).toString("utf8").split(SEPARATOR);
      yield* texts.slice(Math.max(0, from - first), end - first);
    }
  }
}

/** Opens a file for reading; null if there is none. */
export function openIfThere(path: string): Promise<FileHandle | null> {
  return open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

/** Index of the member that has this text. */
function memberOf(members: readonly Member[], text: number): number {
  let low = 0;
  let high = members.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (members[middle]![0] <= text) low = middle;
    else high = middle - 1;
  }
  return low;
}

async function readTable(file: FileHandle): Promise<Table | null> {
  const { size } = await file.stat();
  if (size < END_BYTES) return null;
  const end = await readAt(file, size - END_BYTES, END_BYTES);
  if (end.toString("latin1", 8) !== MAGIC) return null;
  const offset = Number(end.readBigUInt64LE());
  return JSON.parse((await readAt(file, offset, size - END_BYTES - offset)).toString("utf8")) as Table;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  if (bytesRead < length) throw new Error("a kept record is shorter than its table says");
  return buffer;
}
