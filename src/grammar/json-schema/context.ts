// The part of the schema compiler that the compilers for single types use.

import type { Expression } from "../expression.ts";
import type { JsonLayout, JsonText } from "./json-text.ts";
import type { JsonValue, Schema } from "./keywords.ts";
import type { SchemaCases } from "./logic/cases.ts";

export interface SchemaOptions {
  layout: JsonLayout;
  /** A missing additionalProperties means false, even for objects that declare no properties. */
  closedObjects: boolean;
  /** Declared properties may come in any order. */
  freeOrder: boolean;
  /** A missing additionalProperties allows any property, even between the declared ones. */
  openObjects: boolean;
}

export interface SchemaContext {
  readonly text: JsonText;
  readonly options: SchemaOptions;
  readonly cases: SchemaCases;
  compile(schema: Schema, path: string): Expression;
  /** Whether the value is valid. */
  conforms(value: JsonValue, schema: Schema, path: string): boolean;
  /** Records why a part of the schema allows nothing. */
  impossible(reason: string, path: string): Expression;
}
