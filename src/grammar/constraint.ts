// A constraint on the output, in the service's own terms. The HTTP edge produces it and the compiler consumes it. It is
// plain JSON, so it can be hashed and sent to another thread.

import type { JsonValue } from "./json-schema/keywords.ts";

export interface JsonOptions {
  /** No whitespace between JSON tokens. */
  compact: boolean;
  /** A missing additionalProperties means false. */
  closedObjects: boolean;
  /** Declared properties may come in any order. */
  freeOrder?: boolean;
  /** A missing additionalProperties allows any property, even between the declared ones. */
  openObjects?: boolean;
  /** Regular expression for whitespace between JSON tokens; null allows the usual layouts. */
  whitespacePattern: string | null;
}

/** What an output may be other than tool calls. */
export type PlainShape =
  | { kind: "json_object"; json: JsonOptions }
  | { kind: "json_schema"; schema: JsonValue; json: JsonOptions }
  | { kind: "regex"; pattern: string }
  | { kind: "choice"; choices: readonly string[] }
  | { kind: "grammar"; source: string }
  | { kind: "structural_tag"; tag: JsonValue; json: JsonOptions };

export interface ToolCallsShape {
  kind: "tool_calls";
  format: ToolCallFormat;
  tools: readonly ToolSignature[];
  parallel: boolean;
}

/**
 * `calls_or`: tool calls, or an answer of another shape; the model chooses. An `answer` of null is any text, in which calls
 * may stand.
 */
export type OutputShape =
  | PlainShape
  | ToolCallsShape
  | { kind: "calls_or"; calls: ToolCallsShape; answer: PlainShape | null };

/** How the text spells tool calls (see text/tools). */
export const TOOL_CALL_FORMATS = [
  "hermes",
  "llama3_json",
  "pythonic",
  "mistral",
  "granite",
  "phi4_mini_json",
  "deepseek_v3",
  "deepseek_v31",
  "kimi_k2",
  "glm45",
] as const;

export type ToolCallFormat = (typeof TOOL_CALL_FORMATS)[number];

export interface ToolSignature {
  name: string;
  /** JSON Schema of the arguments; null if there are none. */
  parameters: JsonValue;
  /** For a custom tool: its only argument is the text `input`, and this is what the text must match; null = anything. */
  input?: TextGrammar | null;
}

export interface TextGrammar {
  syntax: "lark" | "regex";
  definition: string;
}

/** Reasoning that precedes the constrained part. */
export interface ReasoningPrefix {
  start: string;
  end: string;
  /**
   * "open": the prompt ended inside the reasoning. "optional": the output may begin with the start marker, provided the
   * vocabulary has a single token for it. A marker in pieces would only draw probability away from the constraint.
   */
  mode: "open" | "optional";
}

/** What an output must look like. */
export interface ConstrainedOutput {
  shape: OutputShape;
  reasoning: ReasoningPrefix | null;
}

export interface Constraint extends ConstrainedOutput {
  /** The request field that errors refer to. */
  param: string;
}

/** Compiling took longer than the last guard allows, which may be the machine's fault. Another attempt may succeed. */
export class LateConstraintError extends Error {
  override name = "LateConstraintError";
  readonly param: string;

  constructor(message: string, param: string) {
    super(message);
    this.param = param;
  }
}

/** The constraint cannot be used. The client gets a 400. */
export class ConstraintError extends Error {
  override name = "ConstraintError";
  readonly param: string;

  constructor(message: string, param: string) {
    super(message);
    this.param = param;
  }
}
