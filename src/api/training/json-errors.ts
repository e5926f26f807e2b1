// Errors in a body's JSON, found before its fields are read.

export class JsonSyntaxError extends Error {
  /** Byte offset in the body. */
  readonly offset: number;

  constructor(message: string, offset: number, cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

/** The JSON may be valid, but it is larger than allowed. */
export class JsonSizeError extends Error {
  /** Path of the value that is too large. */
  readonly path: readonly (string | number)[];

  constructor(message: string, path: readonly (string | number)[], cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSizeError";
    this.path = path;
  }
}
