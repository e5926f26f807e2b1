// A data directory that cannot be used: a person can fix it, so the message is all there is to print.

export class DataDirError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DataDirError";
  }
}
