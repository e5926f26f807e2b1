// Reads a body by its schema.
import { type Static, type TSchema, Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { readValue, type ValueRules } from "./reader.ts";
import { LENIENT, type Violation, Violations } from "./scalars.ts";

// Small pieces that the wire schemas share.

/** Required, but may be null. */
export function nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

/** Absent and null mean the same. */
export function orNull<S extends TSchema>(schema: S, options: { description?: string; default?: unknown } = {}) {
  return Type.Optional(Type.Union([schema, Type.Null()], options));
}

/** A field that must be absent. `reason` says why, and what to do instead. */
export function mustBeAbsent(reason: string) {
  return Type.Optional(Type.Unsafe<never>({ not: {}, description: reason }));
}

/** A 64-bit integer, read exactly. The limits shown are the doubles nearest to the true ones. */
export function int64(options: { minimum?: number; description?: string; default?: unknown } = {}) {
  return Type.Unsafe<bigint>({ type: "integer", format: "int64", minimum: -(2 ** 63), maximum: 2 ** 63, ...options });
}

export const Moment = Type.String({ format: "date-time" });
export const Uuid = Type.String({ format: "uuid" });

/** An object with any keys and values, passed on unchanged. */
export const AnyObject = Type.Unsafe<Record<string, unknown>>({ type: "object", additionalProperties: true });

const Scalar = Type.Union([Type.String(), Type.Number()]);

/** Names in one of the objects below: more than anybody sets, and few enough to read at once. */
const MOST_NAMES = 1000;

/** The same with a bounded number of keys. */
export const Variables = Type.Unsafe<Record<string, unknown>>({
  type: "object",
  additionalProperties: true,
  maxProperties: MOST_NAMES,
});

/** Per-request parameters for engine extensions. */
export const ExtraArgs = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Array(Scalar)]), {
  maxProperties: MOST_NAMES,
});

export const StreamOptions = Type.Object(
  {
    include_usage: orNull(Type.Boolean(), { description: "End with a chunk that has the usage of the whole request." }),
    continuous_usage_stats: orNull(Type.Boolean(), {
      description: "Put running usage on every chunk. Needs include_usage.",
      default: false,
    }),
  },
  { title: "StreamOptions" },
);

export const RepetitionDetection = Type.Object(
  {
    max_pattern_size: Type.Optional(Type.Integer({ default: 0, description: "Longest pattern to detect; 0 is off." })),
    min_pattern_size: Type.Optional(Type.Integer({ default: 0 })),
    min_count: Type.Optional(
      Type.Integer({ default: 0, description: "Consecutive copies that end the output; at least 2." }),
    ),
  },
  { title: "RepetitionDetection" },
);

export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: nullable(Type.String()),
      code: Type.Integer({ description: "The HTTP status." }),
    }),
  },
  { title: "Error" },
);

// Reads bodies in the OpenAI/vLLM dialect leniently. A bad body gets one 400 that lists all its violations.

const OPENAI: ValueRules = { scalars: LENIENT, nullIsAbsent: false, maxViolations: 20 };

export interface Read<T> {
  value: T;
  /** Unknown keys of the outermost object. */
  ignored: string[];
}

export function readBody<S extends TSchema>(schema: S, body: unknown): Read<Static<S>> {
  const violations = new Violations(OPENAI.maxViolations);
  const value = readValue(schema, body, OPENAI, violations);
  if (violations.any) throw invalidBody(violations);
  const known = "properties" in schema ? (schema.properties as object) : {};
  const ignored = Object.keys(body as object).filter((key) => !Object.hasOwn(known, key));
  return { value: value as Static<S>, ignored };
}

function invalidBody({ list, full }: Violations): ServiceError {
  const place = ({ loc }: Violation) => ["body", ...loc].join(".");
  const lines = list.map((violation) => `\n  ${place(violation)}: ${violation.type}: ${violation.msg}`);
  const count = `${list.length}${full ? " or more" : ""} validation error${list.length === 1 ? "" : "s"}:`;
  return new ServiceError("invalid_body", `${count}${lines.join("")}`, { param: place(list[0]!) });
}
