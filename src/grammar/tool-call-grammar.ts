// The text of forced tool calls in each of the formats text/tools can read. Calls follow the tools' parameter schemas, so
// what is generated always parses and always validates.

import type { ToolCallFormat, ToolSignature } from "./constraint.ts";
import { choice, type Expression, type GrammarBuilder, repeat, sequence, text } from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";
import { type JsonLayout, jsonLayout } from "./json-schema/json-layout.ts";
import { isObject, isSchema, type JsonValue, type Schema } from "./json-schema/keywords.ts";
import { compileObject } from "./json-schema/objects.ts";
import { SchemaCompiler } from "./json-schema/schema-compiler.ts";

export function toolCallGrammar(
  format: ToolCallFormat,
  tools: readonly ToolSignature[],
  parallel: boolean,
  builder: GrammarBuilder,
): Expression {
  const json = jsonLayout({ compact: false, whitespacePattern: null });
  const call = choice(
    ...tools.map((tool, index) => named(tool, () => oneCall(format, tool, json, builder, `${index}.`))),
  );
  const one = builder.rule(call);
  const several = (between: string): Expression =>
    sequence(one, repeat(sequence(text(between), one), 0, parallel ? null : 0));
  switch (format) {
    case "hermes":
      return several("\n");
    case "llama3_json":
      return several("; ");
    case "pythonic":
      return sequence(text("["), several(", "), text("]"));
    default:
      return format satisfies never;
  }
}

function oneCall(
  format: ToolCallFormat,
  tool: ToolSignature,
  json: JsonLayout,
  builder: GrammarBuilder,
  scope: string,
): Expression {
  const name = JSON.stringify(tool.name);
  if (tool.name === "") throw new GrammarError("a function that is to be called needs a name");
  switch (format) {
    case "hermes":
      return sequence(
        text(`<tool_call>\n{"name": ${name}, "arguments": `),
        argumentObject(tool.parameters, json, builder, scope),
        text("}\n</tool_call>"),
      );
    case "llama3_json":
      return sequence(
        text(`{"name": ${name}, "parameters": `),
        argumentObject(tool.parameters, json, builder, scope),
        text("}"),
      );
    case "pythonic":
      // What text/tools/python-call.ts reads as a name.
      if (!/^[A-Za-z_][\w.-]*$/.test(tool.name))
        throw new GrammarError("the name cannot be written as a pythonic call");
      return sequence(text(tool.name), keywordArguments(tool.parameters, json, builder, scope));
    default:
      return format satisfies never;
  }
}

function argumentObject(parameters: JsonValue, json: JsonLayout, builder: GrammarBuilder, scope: string): Expression {
  const schema = parameterSchema(parameters);
  const compiler = new SchemaCompiler(schema, { layout: json, closedObjects: false }, builder, scope);
  return compiler.compile({ allOf: [{ type: "object" }, schema as JsonValue] }, "#");
}

function keywordArguments(parameters: JsonValue, json: JsonLayout, builder: GrammarBuilder, scope: string): Expression {
  const schema = parameterSchema(parameters);
  const layout: JsonLayout = { ...json, words: { true: "True", false: "False", null: "None" } };
  const compiler = new SchemaCompiler(schema, { layout, closedObjects: false }, builder, `${scope}python `);
  const flat = compiler.flatten({ allOf: [{ type: "object" }, schema as JsonValue] }, "#");
  if (flat === false) throw new GrammarError("the parameters allow no arguments at all");
  for (const keyword of ["anyOf", "oneOf", "enum", "const"]) {
    if (flat[keyword] !== undefined)
      throw new GrammarError(`the schema keyword "${keyword}" is not supported for the arguments of a pythonic call`);
  }
  return compileObject(compiler, flat, "#", {
    member: (name, value) => {
      if (!/^[A-Za-z_]\w*$/.test(name))
        throw new GrammarError(`the parameter ${JSON.stringify(name.slice(0, 40))} is not an identifier`);
      return sequence(text(`${name}=`), value);
    },
    extra: () => null,
    comma: text(", "),
    none: "()",
    wrap: (content) => sequence(text("("), content, text(")")),
  });
}

const noParameters: Schema = { type: "object", additionalProperties: false };

/** Keywords that can name or ask for properties elsewhere than under `properties`. */
const OTHER_SOURCES = ["additionalProperties", "minProperties", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"];

/** A function that declares no parameters is called with none: without a schema, with an empty one, with no `properties`. */
function parameterSchema(parameters: JsonValue): Schema {
  if (parameters === null) return noParameters;
  if (!isSchema(parameters)) throw new GrammarError("parameters must be a JSON schema");
  if (typeof parameters === "boolean") return parameters;
  if (Object.keys(parameters).length === 0) return noParameters;
  const { properties, required } = parameters;
  const declaresNone =
    isObject(properties) &&
    Object.keys(properties).length === 0 &&
    !(Array.isArray(required) && required.length > 0) &&
    !OTHER_SOURCES.some((keyword) => Object.hasOwn(parameters, keyword));
  return declaresNone ? { ...parameters, additionalProperties: false } : parameters;
}

function named(tool: ToolSignature, build: () => Expression): Expression {
  try {
    return build();
  } catch (error) {
    if (error instanceof GrammarError)
      throw new GrammarError(`tool ${JSON.stringify(tool.name.slice(0, 64))}: ${error.message}`);
    throw error;
  }
}
