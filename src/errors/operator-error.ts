// A mistake the operator can fix: a bad option, file or folder. Printed as one line, without a stack.
// The message says what is wrong and what to do about it.

export class OperatorError extends Error {
  override name = "OperatorError";
}
