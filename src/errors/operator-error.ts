// A mistake that the operator can fix: a bad option, file or folder. The message says what is wrong and what to do. It is
// printed as one line, without a stack.

export class OperatorError extends Error {
  override name = "OperatorError";
}
