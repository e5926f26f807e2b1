// A model or adapter file that cannot be used: missing, damaged, inconsistent or unsupported. The message names the
// file, what was expected, what was found and, where possible, the fix.

import { OperatorError } from "../../errors/faults.ts";

export class CheckpointError extends OperatorError {
  override name = "CheckpointError";
  /** The file or folder at fault. */
  readonly file: string;

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.file = file;
  }
}
