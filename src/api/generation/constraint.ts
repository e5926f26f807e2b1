// Constraints of a request: how they are spelt, and how they are compiled.
import type { Static, TObject } from "typebox";
import type { GenerateRequest } from "../../engine/contract.ts";
import { invalidCombination, ServiceError } from "../../errors/service-error.ts";
import { type Constraint, ConstraintError, LateConstraintError, type PlainShape } from "../../grammar/constraint.ts";
import { type GrammarService, QueueFullError } from "../../grammar/grammar-service.ts";
import type { JsonValue } from "../../grammar/json-schema/keywords.ts";
import { InnerJson } from "../http/body.ts";
import type { guidedFields, ResponseFormat, StructuredOutputs } from "./fields.schema.ts";

// Converts response_format, structured_outputs and guided_* to an output shape. A request may ask for one kind at most.
// If response_format and another field ask for the same kind, response_format wins. grammar/ checks that the schema,
// expression or grammar compiles.

type Format = Static<typeof ResponseFormat>;
type Outputs = Static<typeof StructuredOutputs>;

const KINDS = ["json", "regex", "choice", "grammar", "json_object", "structural_tag"] as const;
type Kind = (typeof KINDS)[number];
type Wanted = Partial<Record<Kind, unknown>>;

export interface WantedShape {
  shape: PlainShape;
  /** The field it came from. */
  param: "response_format" | "structured_outputs";
}

export interface ShapeFields extends Partial<Static<TObject<typeof guidedFields>>> {
  response_format?: Format | null | undefined;
  structured_outputs?: Outputs | null | undefined;
}

export function readOutputShape(body: ShapeFields): WantedShape | null {
  const { response_format: format } = body;
  const older = guided(body);
  if (older !== null && body.structured_outputs) {
    throw invalidCombination("structured_outputs and guided_* cannot be combined.");
  }
  const outputs = older ?? body.structured_outputs;
  const fromFormat = format === undefined || format === null ? {} : wantedByFormat(format);
  const param = Object.keys(fromFormat).length > 0 ? "response_format" : "structured_outputs";
  const fields = outputs ?? {};
  const given = KINDS.filter((kind) => (fields[kind] ?? null) !== null);
  if (outputs && given.length === 0 && Object.keys(fromFormat).length === 0) {
    throw invalidCombination(`structured_outputs must have one of ${KINDS.join(", ")}.`);
  }
  const fromOutputs: Wanted = Object.fromEntries(given.map((kind) => [kind, fields[kind]]));
  const shape = toShape({ ...fromOutputs, ...fromFormat }, fields);
  return shape === null ? null : { shape, param };
}

/** The guided_* fields as structured_outputs; null if none is set. */
function guided(body: ShapeFields): Outputs | null {
  const { guided_json: json, guided_regex: regex, guided_choice: choice, guided_grammar: grammar } = body;
  const outputs = { json, regex, choice, grammar };
  if (Object.values(outputs).every((value) => (value ?? null) === null)) return null;
  return { ...outputs, whitespace_pattern: body.guided_whitespace_pattern };
}

function bad(message: string, param: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_constraint", message, { param, cause });
}

function wantedByFormat(format: Format): Wanted {
  switch (format.type) {
    case "text":
      return {};
    case "json_object":
      return (format.schema ?? null) === null ? { json_object: true } : { json: format.schema };
    case "json_schema": {
      if (format.json_schema === undefined || format.json_schema === null) {
        throw invalidCombination("response_format of type json_schema needs json_schema.", "response_format");
      }
      if (format.json_schema.schema === undefined || format.json_schema.schema === null) {
        throw invalidCombination("response_format.json_schema needs a schema.");
      }
      return { json: format.json_schema.schema };
    }
    case "structural_tag":
      return { structural_tag: tagOfFormat(format) };
    default:
      throw new Error(`response_format type ${format.type satisfies never}`);
  }
}

/** The current form has `format`, the legacy form `structures` and `triggers`. */
function tagOfFormat(format: Format): unknown {
  const isGiven = (value: unknown) => typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (isGiven(format.format)) return { type: "structural_tag", format: format.format };
  if (Array.isArray(format.structures) && Array.isArray(format.triggers)) {
    return { type: "structural_tag", structures: format.structures, triggers: format.triggers };
  }
  throw bad("response_format of type structural_tag needs format, or structures and triggers.", "response_format");
}

function toShape(wanted: Wanted, options: Partial<Outputs>): PlainShape | null {
  const kinds = KINDS.filter((kind) => wanted[kind] !== undefined);
  if (kinds.length > 1) throw invalidCombination(`Only one kind of constraint can apply, got ${kinds.join(" and ")}.`);
  const kind = kinds[0];
  if (kind === undefined) return null;
  const value = wanted[kind];
  const json = {
    compact: options.disable_any_whitespace ?? false,
    closedObjects: options.disable_additional_properties ?? false,
    freeOrder: options.any_property_order ?? false,
    openObjects: options.undeclared_properties ?? false,
    whitespacePattern: options.whitespace_pattern ?? null,
  };
  switch (kind) {
    case "json":
      return { kind: "json_schema", schema: asJson(value, "json"), json };
    case "json_object":
      if (value !== true) throw bad("structured_outputs.json_object must be true or left out.", "structured_outputs");
      return { kind: "json_object", json };
    case "regex":
      if ((value as string).includes("\0")) {
        throw bad("structured_outputs.regex must not contain U+0000.", "structured_outputs");
      }
      return { kind: "regex", pattern: value as string };
    case "choice":
      if ((value as string[]).length === 0) {
        throw bad("structured_outputs.choice must not be empty.", "structured_outputs");
      }
      return { kind: "choice", choices: value as string[] };
    case "grammar":
      return { kind: "grammar", source: value as string };
    case "structural_tag":
      return { kind: "structural_tag", tag: asJson(value, "structural_tag"), json };
    default:
      throw new Error(`constraint kind ${kind satisfies never}`);
  }
}

/** Parses JSON text; returns any other value as it is. */
function asJson(value: unknown, field: string): JsonValue {
  if (typeof value !== "string") return value as JsonValue;
  try {
    return new InnerJson().parse(value) as JsonValue;
  } catch (error) {
    if (error instanceof ServiceError) {
      throw bad(`structured_outputs.${field}: ${error.message}`, "structured_outputs", error);
    }
    throw bad(
      `structured_outputs.${field} is not valid JSON: ${(error as Error).message}`,
      "structured_outputs",
      error,
    );
  }
}

// Compiles a constraint before the engine sees it. A constraint that does not compile is a client error.

const NONE = { grammar: null, constraint: null };

/** What the engine gets for a constraint: its source and the grammar's key. */
export type CompiledConstraint = Pick<GenerateRequest, "grammar" | "constraint">;

/** Both null without a constraint, or once the client left or the server stopped. */
export async function grammarFor(
  { grammars, cutSignal }: { grammars: Pick<GrammarService, "compile">; cutSignal: AbortSignal },
  constraint: Constraint | null,
  { client, stopped }: { client: { id: string }; stopped: AbortSignal },
): Promise<CompiledConstraint> {
  if (constraint === null) return NONE;
  try {
    const compiled = await grammars.compile(constraint, client.id, [stopped, cutSignal]);
    if (compiled === null) return NONE;
    const { shape, reasoning } = constraint;
    return { grammar: compiled.key, constraint: { shape, reasoning } };
  } catch (error) {
    throw constraintRefusal(error);
  }
}

/** What the client is told of a constraint that cannot be compiled or looked into; other errors as they are. */
export function constraintRefusal(error: unknown): unknown {
  if (error instanceof QueueFullError) {
    return new ServiceError("constraint_queue_full", error.message, { retryAfter: 1 });
  }
  if (error instanceof LateConstraintError) {
    return new ServiceError("constraint_timeout", error.message, { param: error.param, retryAfter: 1 });
  }
  return error instanceof ConstraintError ? bad(error.message, error.param, error) : error;
}
