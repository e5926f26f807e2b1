// The one error for files of a model or adapter that cannot be used: missing, damaged, inconsistent or unsupported.
// The message names the file, says what was expected and what was found, and where possible what to do about it.

export class CheckpointError extends Error {
  /** The file or folder at fault. */
  readonly file: string;

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.name = "CheckpointError";
    this.file = file;
  }
}
