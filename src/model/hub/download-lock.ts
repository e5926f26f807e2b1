// Allows one downloader per file, across processes: a lock file whose modification time is the owner's heartbeat. A
// lock that nobody refreshed for a minute belonged to a dead process and is taken over. If two processes take over at
// the same instant, a download must still match its checksum before it becomes visible.

import { open, rm, stat, utimes } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const HEARTBEAT_MS = 5_000;
const STALE_MS = 60_000;
const POLL_MS = 250;

/** Runs `work` while holding the lock; waits for a live owner to finish first. */
export async function withDownloadLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
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
