// What can be wrong with a body as JSON, before anybody looks at its fields.

export class JsonSyntaxError extends Error {
  /** Byte offset in the body. */
  readonly offset: number;

  constructor(message: string, offset: number, cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

/** It may be JSON, but there is more of it than is read here. */
export class JsonSizeError extends Error {
  /** Of what is too large. */
  readonly path: readonly (string | number)[];

  constructor(message: string, path: readonly (string | number)[], cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSizeError";
    this.path = path;
  }
}
