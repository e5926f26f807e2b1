// Translates one schema within a grammar. Code outside this folder enters here.

import type { JsonOptions } from "../constraint.ts";
import type { Expression, GrammarBuilder } from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { jsonLayout } from "./json-layout.ts";
import { isSchema, type JsonValue } from "./keywords.ts";
import { SchemaCompiler } from "./schema-compiler.ts";

/** Receives the keywords that no draft defines. */
export type OnIgnored = (keywords: ReadonlySet<string>) => void;

export function schemaExpression(
  schema: JsonValue,
  options: JsonOptions,
  builder: GrammarBuilder,
  onIgnored: OnIgnored,
): Expression {
  if (!isSchema(schema)) throw new GrammarError("a JSON schema must be an object");
  const { closedObjects, freeOrder = false, openObjects = false } = options;
  const chosen = { layout: jsonLayout(options), closedObjects, freeOrder, openObjects };
  const compiler = new SchemaCompiler(schema, chosen, builder);
  const expression = compiler.compileRoot(schema);
  if (compiler.ignored.size > 0) onIgnored(compiler.ignored);
  return expression;
}
