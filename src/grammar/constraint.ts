// A constraint on the output in the service's own terms: what the HTTP edge produces and the compiler takes. Plain JSON,
// so it can be hashed and sent to another thread.

import type { JsonValue } from "./json-schema/keywords.ts";

export interface JsonOptions {
  /** No whitespace between tokens of JSON. */
  compact: boolean;
  /** A missing additionalProperties means false. */
  closedObjects: boolean;
  /** Declared properties may come in any order. */
  freeOrder?: boolean;
  /** A missing additionalProperties allows anything, also between the declared properties. */
  openObjects?: boolean;
  /** Regular expression for whitespace between tokens of JSON; null = the usual layouts. */
  whitespacePattern: string | null;
}

export type OutputShape =
  | { kind: "json_object"; json: JsonOptions }
  | { kind: "json_schema"; schema: JsonValue; json: JsonOptions }
  | { kind: "regex"; pattern: string }
  | { kind: "choice"; choices: readonly string[] }
  | { kind: "grammar"; source: string }
  | { kind: "structural_tag"; tag: JsonValue; json: JsonOptions }
  | { kind: "tool_calls"; format: ToolCallFormat; tools: readonly ToolSignature[]; parallel: boolean };

/** How tool calls are written in the text (see text/tools). */
export type ToolCallFormat = "hermes" | "llama3_json" | "pythonic";

export interface ToolSignature {
  name: string;
  /** JSON Schema of the arguments; null = there are none. */
  parameters: JsonValue;
}

/** Reasoning that comes before the constrained part. */
export interface ReasoningPrefix {
  start: string;
  end: string;
  /**
   * "open": the prompt ended inside the reasoning. "optional": the output may begin with the start marker, if the
   * vocabulary has a token for it: spelled out in pieces it would only draw probability away from the constraint.
   */
  mode: "open" | "optional";
}

/** What an output must look like. */
export interface ConstrainedOutput {
  shape: OutputShape;
  reasoning: ReasoningPrefix | null;
}

export interface Constraint extends ConstrainedOutput {
  /** The request field an error is reported under. */
  param: string;
}

/** A constraint that cannot be used, for the sender: becomes a 400. */
export class ConstraintError extends Error {
  override name = "ConstraintError";
  readonly param: string;

  constructor(message: string, param: string) {
    super(message);
    this.param = param;
  }
}
