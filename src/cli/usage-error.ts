// A mistake of the person at the terminal: printed as one line, without a stack.

export class UsageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UsageError";
  }
}
