// One row of the error table.

export interface ErrorRow {
  status: number;
  /** `error.type` on the wire. */
  type: string;
  meaning: string;
  fix: string;
  /**
   * Seconds to wait before a retry (Retry-After), unless the error itself gives a better number. "useless" means that a
   * retry cannot help; SDKs are told so (x-should-retry: false). Every 429 and 503 sets this field.
   */
  repeat?: number | "useless";
}
