// The storage of --storage cannot be used now. Nothing was changed, or what was begun does not count.

export class StorageUnavailable extends Error {
  override name = "StorageUnavailable";
  /** What is wrong and what to do, for the operator. The message is for everybody. */
  readonly reason: string;
  /** Whether it may be over soon, without anybody doing anything. */
  readonly passing: boolean;

  constructor(reason: string, passing: boolean, cause: unknown) {
    const message = passing
      ? "the storage of the server cannot be reached"
      : "the storage of the server refuses access";
    // in the chain, so that the log shows it
    super(message, { cause: new Error(reason, { cause }) });
    this.reason = reason;
    this.passing = passing;
  }
}
