// Downloads one file of a repository into the cache's blob store. Interrupted downloads stay as <blob>.incomplete and
// continue where they stopped, in this process or a later one. The content is hashed on the way, and only a file with
// the right hash gets its final name. (@huggingface/hub lists files and revisions, but neither resumes nor verifies.)

import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncFolder } from "../../system/files.ts";
import { HubError } from "./hub-cache.ts";

// Allows one downloader per file, across processes: a lock file whose modification time is the owner's heartbeat. A
// lock that nobody refreshed for a minute belonged to a dead process and is taken over. If two processes take over at
// the same instant, a download must still match its checksum before it becomes visible.

const HEARTBEAT_MS = 5_000;
const STALE_MS = 60_000;
const POLL_MS = 250;

/** Runs `work` while holding the lock; waits for a live owner to finish first. */
async function withDownloadLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  while (!(await tryAcquire(path))) await sleep(POLL_MS, undefined, { signal });
  const heartbeat = setInterval(() => {
    const now = new Date();
    // A lost beat is harmless, and even without the lock file the checksum still protects the result.
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    await rm(path, { force: true });
  }
}

async function tryAcquire(path: string): Promise<boolean> {
  try {
    const handle = await open(path, "wx");
    await handle.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const age = await stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
  if (age > STALE_MS) await rm(path, { force: true });
  return false;
}

export interface BlobDownload {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Where the finished blob goes. */
  path: string;
  /** For messages. */
  name: string;
  size: number;
  /** SHA-256 of the content (64 digits), or git's id of the file (40 digits). */
  hash: string;
  onProgress: (done: number) => void;
  signal: AbortSignal;
  /** First wait before trying again; doubles each time. */
  retryDelayMs: number;
}

/** Attempts without a single new byte before giving up. */
const MAX_IDLE_ATTEMPTS = 5;

export async function downloadBlob(download: BlobDownload): Promise<void> {
  if ((await sizeOf(download.path)) !== null) return;
  await mkdir(dirname(download.path), { recursive: true });
  const partial = `${download.path}.incomplete`;
  await withDownloadLock(`${partial}.lock`, download.signal, async () => {
    // Another process may have finished it while this one waited.
    if ((await sizeOf(download.path)) !== null) return;
    const resumed = ((await sizeOf(partial)) ?? 0) > 0;
    if (!(await fillAndVerify(download, partial))) {
      // The rest of an earlier run may have been damaged, so start once more from the beginning.
      if (!resumed || !(await fillAndVerify(download, partial))) throw corrupt(download);
    }
    await rename(partial, download.path);
    syncFolder(dirname(download.path));
  });
}

/** Completes the partial file. Returns true if its hash is right; deletes it otherwise. */
async function fillAndVerify(download: BlobDownload, partial: string): Promise<boolean> {
  const { hash, length } = await hashOf(partial, download);
  const progress = { done: length, hash };
  const file = await open(partial, length > 0 ? "r+" : "w");
  try {
    let idleAttempts = 0;
    while (progress.done < download.size) {
      const before = progress.done;
      try {
        await receive(download, file, progress);
        if (progress.done < download.size) throw new TypeError("the connection ended early");
      } catch (error) {
        download.signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        idleAttempts = progress.done > before ? 0 : idleAttempts + 1;
        if (idleAttempts >= MAX_IDLE_ATTEMPTS) throw unreachable(download, error);
        await sleep(download.retryDelayMs * 2 ** idleAttempts, undefined, { signal: download.signal });
      }
    }
    await file.sync();
  } finally {
    await file.close();
  }
  if (progress.hash.digest("hex") === download.hash) return true;
  await rm(partial);
  return false;
}

/** Requests the missing bytes once and appends them to the file as they arrive. */
async function receive(
  download: BlobDownload,
  file: FileHandle,
  progress: { done: number; hash: Hash },
): Promise<void> {
  const headers = { ...download.headers, ...(progress.done > 0 && { range: `bytes=${progress.done}-` }) };
  const response = await fetch(download.url, { headers, signal: download.signal });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new StatusError(download, response.status);
  }
  const continues = response.headers.get("content-range")?.startsWith(`bytes ${progress.done}-`) ?? false;
  if (progress.done > 0 && !(response.status === 206 && continues)) {
    // The server sends the whole file despite the range.
    await file.truncate(0);
    progress.done = 0;
    progress.hash = newHash(download);
  }
  for await (const chunk of response.body) {
    if (progress.done + chunk.length > download.size) throw corrupt(download);
    // One call may write only a part, for example when the disk is almost full.
    for (let sent = 0; sent < chunk.length; ) {
      const { bytesWritten } = await file.write(chunk, sent, chunk.length - sent, progress.done + sent);
      sent += bytesWritten;
    }
    progress.hash.update(chunk);
    progress.done += chunk.length;
    download.onProgress(progress.done);
  }
}

async function hashOf(partial: string, download: BlobDownload): Promise<{ hash: Hash; length: number }> {
  const hash = newHash(download);
  const length = (await sizeOf(partial)) ?? 0;
  if (length > download.size) return { hash, length: 0 };
  if (length > 0) for await (const chunk of createReadStream(partial)) hash.update(chunk);
  return { hash, length };
}

function newHash({ hash, size }: BlobDownload): Hash {
  return hash.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${size}\0`);
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

class StatusError extends HubError {
  readonly status: number;

  constructor(download: BlobDownload, status: number) {
    super(`downloading ${download.name}: ${new URL(download.url).host} answered with status ${status}`);
    this.status = status;
  }
}

/** Whether another attempt may help: a network fault or a busy server, not a refusal, a full disk or wrong content. */
function isPassing(error: unknown): boolean {
  if (error instanceof StatusError) return error.status >= 500 || error.status === 429 || error.status === 408;
  if (error instanceof HubError) return false;
  // fetch reports every network failure as a TypeError. File system errors have a code.
  return (
    error instanceof TypeError ||
    ["ECONNRESET", "EPIPE", "ETIMEDOUT"].includes((error as NodeJS.ErrnoException).code ?? "")
  );
}

function unreachable(download: BlobDownload, cause: unknown): HubError {
  const problem =
    cause instanceof StatusError ? cause.message : `downloading ${download.name}: the connection keeps failing`;
  return new HubError(`${problem}; the bytes received are kept; run it again to continue`, { cause });
}

function corrupt(download: BlobDownload): HubError {
  return new HubError(
    `downloading ${download.name}: the content does not match its checksum ${download.hash}; it was not stored`,
  );
}
