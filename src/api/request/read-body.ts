// Reads bodies in the OpenAI/vLLM dialect leniently. A bad body gets one 400 that lists all its violations.

import type { Static, TSchema } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { type Dialect, readValue } from "./reader.ts";
import { LENIENT } from "./scalars.ts";
import { type Violation, Violations } from "./violations.ts";

const OPENAI: Dialect = { scalars: LENIENT, nullIsAbsent: false, maxViolations: 20 };

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
