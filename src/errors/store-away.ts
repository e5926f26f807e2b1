import { CommitUnknown } from "./commit-unknown.ts";
import { StoreUnavailable } from "./store-unavailable.ts";

/** Whether something failed only because the database is away. After a CommitUnknown it may have been done nevertheless. */
export function isStoreAway(error: unknown): boolean {
  return error instanceof StoreUnavailable || error instanceof CommitUnknown;
}
