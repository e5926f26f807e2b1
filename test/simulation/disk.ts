// A disk in memory. What was not synced when the power fails is lost, or not, file by file. It can be full.

import type { Chance } from "../cluster/chance.ts";

interface FileNode {
  kind: "file";
  id: number;
  bytes: Buffer;
  mtimeMs: number;
  links: number;
  /** What is on the disk for sure; null = nothing. */
  synced: Buffer | null;
}

interface FolderNode {
  kind: "folder";
  id: number;
  entries: Map<string, Node>;
  mtimeMs: number;
  synced: Map<string, Node>;
}

type Node = FileNode | FolderNode;

/** What a call of the file system says of a file or folder. */
export interface Stats {
  size: number;
  mtimeMs: number;
  mtime: Date;
  dev: number;
  ino: number;
  mode: number;
  nlink: number;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

interface Descriptor {
  node: Node;
  path: string;
  position: number;
  appends: boolean;
}

const FIRST_DESCRIPTOR = 1_000_000;

export class Disk {
  /** Paths below it are on this disk. */
  readonly root: string;
  /** Bytes that fit. */
  capacity = Number.POSITIVE_INFINITY;
  used = 0;
  readonly #clock: () => number;
  readonly #top: FolderNode;
  readonly #open = new Map<number, Descriptor>();
  #ids = 1;
  #descriptors = FIRST_DESCRIPTOR;

  constructor(root: string, clock: () => number) {
    this.root = root;
    this.#clock = clock;
    this.#top = this.#newFolder();
  }

  has(path: unknown): path is string {
    return typeof path === "string" && (path === this.root || path.startsWith(`${this.root}/`));
  }

  exists(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  stat(path: string): Stats {
    return this.#statsOf(this.#get(path, "stat"));
  }

  makeFolder(path: string, recursive: boolean): string | undefined {
    if (!recursive) {
      const { folder, name } = this.#placeOf(path, "mkdir");
      if (folder.entries.has(name)) throw failure("EEXIST", "mkdir", path);
      this.#put(folder, name, this.#newFolder());
      return path;
    }
    let first: string | undefined;
    const names = this.#names(path);
    for (let depth = 1; depth <= names.length; depth++) {
      const part = [this.root, ...names.slice(0, depth)].join("/");
      const found = this.#find(part);
      if (found?.kind === "file") throw failure("EEXIST", "mkdir", part);
      if (found) continue;
      this.makeFolder(part, false);
      first ??= part;
    }
    return first;
  }

  /** In the order of their names. */
  list(path: string): { name: string; isFolder: boolean }[] {
    const node = this.#get(path, "scandir");
    if (node.kind === "file") throw failure("ENOTDIR", "scandir", path);
    const names = [...node.entries.keys()].sort();
    return names.map((name) => ({ name, isFolder: node.entries.get(name)!.kind === "folder" }));
  }

  rename(from: string, to: string): void {
    const node = this.#get(from, "rename");
    const [source, target] = [this.#placeOf(from, "rename"), this.#placeOf(to, "rename")];
    const there = target.folder.entries.get(target.name);
    if (there === node) return;
    if (there?.kind === "folder" && there.entries.size > 0) throw failure("ENOTEMPTY", "rename", to);
    if (there && there.kind !== node.kind) throw failure(there.kind === "file" ? "ENOTDIR" : "EISDIR", "rename", to);
    source.folder.entries.delete(source.name);
    source.folder.mtimeMs = this.#clock();
    if (there) this.#drop(there);
    this.#put(target.folder, target.name, node);
  }

  /** Removes a file or an empty folder. */
  unlink(path: string): void {
    const node = this.#get(path, "unlink");
    if (node.kind === "folder" && node.entries.size > 0) throw failure("ENOTEMPTY", "rmdir", path);
    const { folder, name } = this.#placeOf(path, "unlink");
    folder.entries.delete(name);
    folder.mtimeMs = this.#clock();
    this.#drop(node);
  }

  link(from: string, to: string): void {
    const node = this.#get(from, "link");
    const { folder, name } = this.#placeOf(to, "link");
    if (folder.entries.has(name)) throw failure("EEXIST", "link", to);
    if (node.kind === "folder") throw failure("EPERM", "link", from);
    node.links++;
    this.#put(folder, name, node);
  }

  touch(path: string, mtimeMs: number): void {
    this.#get(path, "utime").mtimeMs = mtimeMs;
  }

  /** `flags`: as open(2) of Node has them, without "+" for what may be written. */
  open(path: string, flags: { create: boolean; exclusive: boolean; truncate: boolean; appends: boolean }): number {
    let node = this.#find(path);
    if (node && flags.exclusive) throw failure("EEXIST", "open", path);
    if (!node) {
      if (!flags.create) throw failure("ENOENT", "open", path);
      const { folder, name } = this.#placeOf(path, "open");
      node = { kind: "file", id: this.#ids++, bytes: Buffer.alloc(0), mtimeMs: this.#clock(), links: 1, synced: null };
      this.#put(folder, name, node);
    }
    const descriptor = this.#descriptors++;
    this.#open.set(descriptor, { node, path, position: 0, appends: flags.appends });
    if (flags.truncate) this.truncate(descriptor, 0);
    return descriptor;
  }

  isOpen(descriptor: unknown): descriptor is number {
    return typeof descriptor === "number" && descriptor >= FIRST_DESCRIPTOR;
  }

  close(descriptor: number): void {
    if (!this.#open.delete(descriptor)) throw failure("EBADF", "close", String(descriptor));
  }

  statOpen(descriptor: number): Stats {
    return this.#statsOf(this.#descriptor(descriptor, "fstat").node);
  }

  read(descriptor: number, into: Uint8Array, offset: number, length: number, position: number | null): number {
    const open = this.#descriptor(descriptor, "read");
    const { bytes } = fileOf(open, "read");
    const at = position ?? open.position;
    const count = Math.max(0, Math.min(length, bytes.length - at));
    into.set(bytes.subarray(at, at + count), offset);
    if (position === null) open.position += count;
    return count;
  }

  write(descriptor: number, bytes: Uint8Array): number {
    const open = this.#descriptor(descriptor, "write");
    const file = fileOf(open, "write");
    const at = open.appends ? file.bytes.length : open.position;
    const growth = Math.max(0, at + bytes.length - file.bytes.length);
    // a full disk takes what still fits
    const fits = Math.min(growth, Math.max(0, this.capacity - this.used));
    const taken = bytes.length - (growth - fits);
    if (taken <= 0 && bytes.length > 0) throw failure("ENOSPC", "write", open.path);
    const content = Buffer.alloc(Math.max(file.bytes.length, at + taken));
    content.set(file.bytes);
    content.set(bytes.subarray(0, taken), at);
    this.used += content.length - file.bytes.length;
    file.bytes = content;
    file.mtimeMs = this.#clock();
    open.position = at + taken;
    return taken;
  }

  truncate(descriptor: number, length: number): void {
    const file = fileOf(this.#descriptor(descriptor, "ftruncate"), "ftruncate");
    this.used -= file.bytes.length - length;
    file.bytes = Buffer.from(file.bytes.subarray(0, length));
    file.mtimeMs = this.#clock();
  }

  sync(descriptor: number): void {
    const { node } = this.#descriptor(descriptor, "fsync");
    if (node.kind === "file") node.synced = node.bytes;
    else node.synced = new Map(node.entries);
  }

  /** All that there is now is on the disk for sure. */
  syncAll(): void {
    const visit = (node: Node) => {
      if (node.kind === "file") node.synced = node.bytes;
      else {
        node.synced = new Map(node.entries);
        for (const inside of node.entries.values()) visit(inside);
      }
    };
    visit(this.#top);
  }

  /** What is not synced is lost, or not. Nothing is open any more. */
  losePower(chance: Pick<Chance, "between">): void {
    this.#open.clear();
    const visit = (node: Node) => {
      if (node.kind === "file") {
        if (chance.between(0, 1) === 0) node.bytes = node.synced ?? Buffer.alloc(0);
        node.synced = node.bytes;
        return;
      }
      if (chance.between(0, 1) === 0) node.entries = new Map(node.synced);
      node.synced = new Map(node.entries);
      for (const name of [...node.entries.keys()].sort()) visit(node.entries.get(name)!);
    };
    visit(this.#top);
    this.used = 0;
    const seen = new Set<Node>();
    const measure = (node: Node) => {
      if (node.kind === "folder") for (const inside of node.entries.values()) measure(inside);
      else {
        if (!seen.has(node)) {
          node.links = 0;
          this.used += node.bytes.length;
        }
        seen.add(node);
        node.links++;
      }
    };
    measure(this.#top);
  }

  #drop(node: Node): void {
    if (node.kind === "file" && --node.links === 0) this.used -= node.bytes.length;
  }

  #put(folder: FolderNode, name: string, node: Node): void {
    folder.entries.set(name, node);
    folder.mtimeMs = this.#clock();
  }

  #newFolder(): FolderNode {
    return { kind: "folder", id: this.#ids++, entries: new Map(), mtimeMs: this.#clock(), synced: new Map() };
  }

  #names(path: string): string[] {
    return path
      .slice(this.root.length)
      .split("/")
      .filter((name) => name !== "" && name !== ".");
  }

  #find(path: string): Node | undefined {
    let node: Node | undefined = this.#top;
    for (const name of this.#names(path)) node = node?.kind === "folder" ? node.entries.get(name) : undefined;
    return node;
  }

  #get(path: string, call: string): Node {
    const node = this.#find(path);
    if (!node) throw failure("ENOENT", call, path);
    return node;
  }

  #placeOf(path: string, call: string): { folder: FolderNode; name: string } {
    const names = this.#names(path);
    const folder = this.#find([this.root, ...names.slice(0, -1)].join("/"));
    if (!folder || names.length === 0) throw failure("ENOENT", call, path);
    if (folder.kind === "file") throw failure("ENOTDIR", call, path);
    return { folder, name: names.at(-1)! };
  }

  #descriptor(descriptor: number, call: string): Descriptor {
    const open = this.#open.get(descriptor);
    if (!open) throw failure("EBADF", call, String(descriptor));
    return open;
  }

  #statsOf(node: Node): Stats {
    const isFile = node.kind === "file";
    return {
      size: isFile ? node.bytes.length : 0,
      mtimeMs: node.mtimeMs,
      mtime: new Date(node.mtimeMs),
      dev: 1,
      ino: node.id,
      mode: isFile ? 0o100600 : 0o040700,
      nlink: isFile ? node.links : 1,
      isFile: () => isFile,
      isDirectory: () => !isFile,
      isSymbolicLink: () => false,
    };
  }
}

function fileOf({ node, path }: Descriptor, call: string): FileNode {
  if (node.kind === "folder") throw failure("EISDIR", call, path);
  return node;
}

/** As Node's file system throws it. */
export function failure(code: string, call: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });
}
