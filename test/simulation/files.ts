// Node's calls of the file system, for paths on a simulated disk. A process may die at each of them, before or after it
// took effect. Those that answer later do so when the world says.

import fs from "node:fs";
import promises from "node:fs/promises";
import { Readable } from "node:stream";
import type { Disk } from "./disk.ts";
import { Died, type World } from "./world.ts";

interface Stage {
  world: World;
  disk: Disk;
}

// biome-ignore lint/suspicious/noExplicitAny: as loose as the calls that it replaces
type Loose = (...args: any[]) => unknown;

/** The longest that a call takes which answers later, in milliseconds. */
const SLOWEST_MS = 4;

/** `stage`: null = there is no simulated disk now. */
export function replaceFiles(stage: () => Stage | null): void {
  const real = { ...fs };
  const realLater = { ...promises };

  /** One call: the process may die before or after it. */
  const call = <R>(name: string, work: (disk: Disk) => R): R => {
    const { world, disk } = stage()!;
    const { current } = world;
    if (!current.alive || world.diesHere(name)) throw new Died(current);
    const result = work(disk);
    if (world.diesHere(`the end of ${name}`)) throw new Died(current);
    return result;
  };
  const later = <R>(name: string, work: (disk: Disk) => R): Promise<R> => {
    const { world } = stage()!;
    return new Promise((resolve, reject) => {
      world.at(world.current, world.chance.between(0, SLOWEST_MS), name, () => {
        try {
          resolve(call(name, work));
        } catch (error) {
          reject(error);
        }
      });
    });
  };
  const onDisk = (path: unknown) => stage()?.disk.has(path) ?? false;
  const isOpenThere = (descriptor: unknown) => stage()?.disk.isOpen(descriptor) ?? false;
  /** Replaces calls whose first argument is a path, or a descriptor. */
  const replace = (name: keyof typeof fs, is: (first: unknown) => boolean, simulated: Loose) => {
    const otherwise = real[name] as Loose;
    Object.assign(fs, {
      [name]: (...args: unknown[]) => (is(args[0]) ? simulated(...args) : otherwise(...args)),
    });
  };
  const replaceLater = (name: keyof typeof promises, simulated: Loose) => {
    const otherwise = realLater[name] as Loose;
    Object.assign(promises, {
      [name]: (...args: unknown[]) => (onDisk(args[0]) ? simulated(...args) : otherwise(...args)),
    });
  };

  const stat = (path: string, { throwIfNoEntry = true } = {}) =>
    call("stat", (disk) => (throwIfNoEntry || disk.exists(path) ? disk.stat(path) : undefined));
  replace("existsSync", onDisk, (path: string) => call("exists", (disk) => disk.exists(path)));
  replace("statSync", onDisk, stat);
  replace("lstatSync", onDisk, stat);
  replace("statfsSync", onDisk, () =>
    call("statfs", ({ capacity, used }) => ({ bavail: Math.max(0, Math.min(capacity, 2 ** 40) - used), bsize: 1 })),
  );
  replace("mkdirSync", onDisk, (path: string, { recursive = false } = {}) =>
    call("mkdir", (disk) => disk.makeFolder(path, recursive)),
  );
  replace("readdirSync", onDisk, (path: string, options?: { withFileTypes?: boolean }) =>
    call("readdir", (disk) => entries(disk, path, options)),
  );
  replace("renameSync", onDisk, (from: string, to: string) => call("rename", (disk) => disk.rename(from, to)));
  replace("linkSync", onDisk, (from: string, to: string) => call("link", (disk) => disk.link(from, to)));
  replace("copyFileSync", onDisk, (from: string, to: string) =>
    call("copy", (disk) => writeAll(disk, to, readAll(disk, from), "w")),
  );
  replace("utimesSync", onDisk, (path: string, _accessed: unknown, changed: Date) =>
    call("utimes", (disk) => disk.touch(path, changed.getTime())),
  );
  replace("rmSync", onDisk, (path: string, options?: RemoveOptions) => remove(call, path, options));
  replace("readFileSync", onDisk, (path: string, how?: Encoding) =>
    call("read", (disk) => encoded(readAll(disk, path), how)),
  );
  replace("writeFileSync", onDisk, (path: string, data: string | Uint8Array) =>
    call("write", (disk) => writeAll(disk, path, bytesOf(data), "w")),
  );
  replace("openSync", onDisk, (path: string, flags: string | number = "r") =>
    call("open", (disk) => disk.open(path, flagsOf(flags))),
  );
  replace("closeSync", isOpenThere, (fd: number) => call("close", (disk) => disk.close(fd)));
  replace("fstatSync", isOpenThere, (fd: number) => call("fstat", (disk) => disk.statOpen(fd)));
  replace("fsyncSync", isOpenThere, (fd: number) => call("fsync", (disk) => disk.sync(fd)));
  replace("ftruncateSync", isOpenThere, (fd: number, length = 0) =>
    call("truncate", (disk) => disk.truncate(fd, length)),
  );
  replace("readSync", isOpenThere, (fd: number, into: Uint8Array, offset = 0, length = into.length, at = null) =>
    call("read", (disk) => disk.read(fd, into, offset, length, at)),
  );
  replace("writeSync", isOpenThere, (fd: number, bytes: Uint8Array, offset = 0, length = bytes.length - offset) =>
    call("write", (disk) => disk.write(fd, bytes.subarray(offset, offset + length))),
  );
  replace("createReadStream", onDisk, (path: string, how?: StreamOptions) => stream(stage()!, later, path, how));

  replaceLater("readdir", (path: string, options?: { withFileTypes?: boolean }) =>
    later("readdir", (disk) => entries(disk, path, options)),
  );
  replaceLater("stat", (path: string) => later("stat", (disk) => disk.stat(path)));
  replaceLater("rm", async (path: string, options?: RemoveOptions) => {
    await later("rm", () => {});
    remove(call, path, options);
  });
  replaceLater("appendFile", (path: string, data: string) =>
    later("append", (disk) => writeAll(disk, path, bytesOf(data), "a")),
  );
  replaceLater("writeFile", (path: string, data: string | Uint8Array) =>
    later("write", (disk) => writeAll(disk, path, bytesOf(data), "w")),
  );
  replaceLater("readFile", (path: string, how?: Encoding) =>
    later("read", (disk) => encoded(readAll(disk, path), how)),
  );
  replaceLater("open", async (path: string, flags = "r") => {
    const fd = await later("open", (disk) => disk.open(path, flagsOf(flags)));
    return {
      appendFile: (data: string | Uint8Array) =>
        later("append", (disk) => {
          for (let bytes = bytesOf(data); bytes.length > 0; ) bytes = bytes.subarray(disk.write(fd, bytes));
        }),
      sync: () => later("fsync", (disk) => disk.sync(fd)),
      stat: () => later("fstat", (disk) => disk.statOpen(fd)),
      close: () => later("close", (disk) => disk.close(fd)),
      read: (into: Uint8Array, offset: number, length: number, at: number | null) =>
        later("read", (disk) => ({ bytesRead: disk.read(fd, into, offset, length, at), buffer: into })),
    };
  });
}

type Encoding = BufferEncoding | { encoding?: BufferEncoding };
type RemoveOptions = { recursive?: boolean; force?: boolean };
type StreamOptions = { encoding?: BufferEncoding; highWaterMark?: number };
type Call = <R>(name: string, work: (disk: Disk) => R) => R;

/** One entry after the other, so that a crash leaves half of it. */
function remove(call: Call, path: string, { recursive = false, force = false }: RemoveOptions = {}): void {
  if (force && !call("stat", (disk) => disk.exists(path))) return;
  const isFolder = call("stat", (disk) => disk.stat(path).isDirectory());
  if (isFolder && recursive) {
    for (const { name } of call("readdir", (disk) => disk.list(path))) remove(call, `${path}/${name}`, { recursive });
  }
  call("unlink", (disk) => disk.unlink(path));
}

function entries(disk: Disk, path: string, options?: { withFileTypes?: boolean }): unknown[] {
  const found = disk.list(path);
  if (!options?.withFileTypes) return found.map(({ name }) => name);
  return found.map(({ name, isFolder }) => ({ name, isDirectory: () => isFolder, isFile: () => !isFolder }));
}

function readAll(disk: Disk, path: string): Buffer {
  const fd = disk.open(path, flagsOf("r"));
  const bytes = Buffer.alloc(disk.statOpen(fd).size);
  disk.read(fd, bytes, 0, bytes.length, 0);
  disk.close(fd);
  return bytes;
}

function writeAll(disk: Disk, path: string, data: Uint8Array, flags: "w" | "a"): void {
  const fd = disk.open(path, flagsOf(flags));
  try {
    for (let bytes = data; bytes.length > 0; ) bytes = bytes.subarray(disk.write(fd, bytes));
  } finally {
    disk.close(fd);
  }
}

/** Comes in pieces of a size that the world chooses. */
function stream(
  { world }: Stage,
  later: <R>(name: string, work: (disk: Disk) => R) => Promise<R>,
  path: string,
  { encoding, highWaterMark = 65_536 }: StreamOptions = {},
): Readable {
  let fd: number | null = null;
  const piece = Math.min(highWaterMark, 2 ** world.chance.between(6, 17));
  return new Readable({
    ...(encoding === undefined ? {} : { encoding }),
    read() {
      const read = async () => {
        fd ??= await later("open", (disk) => disk.open(path, flagsOf("r")));
        const opened = fd;
        const bytes = Buffer.alloc(piece);
        const count = await later("read", (disk) => disk.read(opened, bytes, 0, piece, null));
        this.push(count === 0 ? null : bytes.subarray(0, count));
      };
      read().catch((error: Error) => this.destroy(error));
    },
    destroy(error, done) {
      const opened = fd;
      if (opened === null) return done(error);
      later("close", (disk) => disk.close(opened)).then(
        () => done(error),
        () => done(error),
      );
    },
  });
}

function flagsOf(flags: string | number) {
  const text = typeof flags === "number" ? "r" : flags;
  return {
    create: text.startsWith("w") || text.startsWith("a"),
    exclusive: text.includes("x"),
    truncate: text.startsWith("w"),
    appends: text.startsWith("a"),
  };
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? Buffer.from(data) : data;
}

function encoded(bytes: Buffer, how?: Encoding): string | Buffer {
  const encoding = typeof how === "string" ? how : how?.encoding;
  return encoding === undefined ? bytes : bytes.toString(encoding);
}
