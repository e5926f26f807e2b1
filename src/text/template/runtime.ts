// What built-in filters, tests and methods know of the evaluator that runs them.

import type { CallArguments, Value } from "./values.ts";

export interface Limits {
  /** Nodes evaluated. */
  maxSteps: number;
  /** Characters of any one text, the result included. */
  maxText: number;
  /** Elements of any one list. */
  maxItems: number;
  /** Characters put together by all blocks. */
  maxTotalText: number;
}

export interface Runtime {
  readonly limits: Limits;
  applyFilter(name: string, operand: Value, args: CallArguments): Value;
}
