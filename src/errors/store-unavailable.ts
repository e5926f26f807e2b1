// The database cannot be reached. Nothing was changed, so it helps to try again.

export class StoreUnavailable extends Error {
  override name = "StoreUnavailable";
}
