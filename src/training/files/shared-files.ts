// The files that all servers of a database share. They are below the root of a workspace on every server: either the root
// is a folder that all of them see (shared-folder.ts), or each has a local copy of what it uses (s3/shared-bucket.ts).
// Paths are relative to the root, with "/" between names. The rows of the database decide what exists, not the files.
import { statSync } from "node:fs";
import type { Cleared, KnownFiles } from "./leftovers.ts";

// Whether a path is a file that can be seen now.
export function hasFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

export interface Access {
  /** Ends the wait for the files, with its reason. */
  signal?: AbortSignal;
  /** A job waits long for a storage that is unreachable: its work would be lost. A request does not. */
  patient?: boolean;
}

/** What is wanted of a step. "all" includes the state of the optimizer, most of its bytes. */
export type StepParts = "adapter" | "all";

/** Whether somebody on this server uses the files of a step, which are in the folder `path`. */
export type IsStepUsed = (modelId: string, step: number, path: string) => boolean;

export interface SharedFile {
  path: string;
  bytes: number;
  /** When it was written, in milliseconds since 1970. */
  writtenAt: number;
}

export interface SharedFiles {
  /**
   * Moves a complete staging folder into place, durably and for all servers. Returns the name that it got inside the
   * folder of its model: one that no other publication has or had, so its files can go if its row cannot be committed.
   */
  publishStep(staging: string, modelId: string, step: number, digest: string, access: Access): Promise<string>;

  /**
   * Makes the files of a published step readable on this server, until nobody here uses it. Files that never come are
   * left to whoever reads them. Throws DamagedFiles if they are not those that were published.
   */
  fetchStep(modelId: string, folder: string, parts: StepParts, access: Access): Promise<void>;

  /** Makes a complete local file readable on all servers. Its local copy may go. */
  share(path: string, access: Access): Promise<void>;

  /** Makes a shared file readable on this server. One that is not there is left to whoever reads it. */
  fetch(path: string, access: Access): Promise<void>;

  /** Removes a shared file everywhere. It need not exist. */
  removeFile(path: string): Promise<void>;

  /** Removes a folder of shared files everywhere. It need not exist. */
  removeFolder(path: string): Promise<void>;

  /** The shared files below a folder, which need not exist. Another server may remove some at any time. */
  list(path: string): Promise<SharedFile[]>;

  /** Clears away what the rows do not know, if nobody can still be making it. */
  clear(known: KnownFiles, minAgeMs: number): Promise<Cleared>;

  /** Tells how to find out what must stay readable on this server. */
  protect(isUsed: IsStepUsed): void;
}

/** Files are not those that were published. */
export class DamagedFiles extends Error {
  override name = "DamagedFiles";
}
