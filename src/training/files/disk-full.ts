// A full disk is something a client and an operator can understand; it must not look like a fault of the server.

import { ServiceError } from "../../errors/service-error.ts";

export function isDiskFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOSPC" || code === "EDQUOT" || code === "SQLITE_FULL";
}

export function storageFull(cause?: unknown): ServiceError {
  return new ServiceError("storage_full", "The server's disk is full.", { cause });
}

/** The error for clients when the disk is full; anything else stays what it is. */
export function asStorageFull(error: unknown): unknown {
  return isDiskFull(error) ? storageFull(error) : error;
}

export async function onDisk<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw asStorageFull(error);
  }
}
