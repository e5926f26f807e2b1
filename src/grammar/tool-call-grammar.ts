// The text of forced tool calls, in each format that text/tools can read. Calls follow the tools' parameter schemas, so
// every generated call parses and validates.

import type { ToolCallFormat, ToolSignature } from "./constraint.ts";
import { choice, type Expression, empty, type GrammarBuilder, repeat, sequence, text } from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";
import { jsonLayout } from "./json-schema/json-layout.ts";
import { isObject, isSchema, type JsonValue, type Schema } from "./json-schema/keywords.ts";
import { compileObject, type ObjectStyle } from "./json-schema/objects/objects.ts";
import { SchemaCompiler } from "./json-schema/schema-compiler.ts";
import type { OnIgnored } from "./json-schema/schema-expression.ts";
import { CALL_SPELLINGS } from "./tool-call-spelling.ts";

export function toolCallGrammar(
  format: ToolCallFormat,
  tools: readonly ToolSignature[],
  parallel: boolean,
  builder: GrammarBuilder,
  onIgnored: OnIgnored,
): Expression {
  const call = choice(
    ...tools.map((tool) =>
      named(tool, () => {
        const compiler = argumentCompiler(format, tool.parameters, builder);
        const call = oneCall(format, tool, compiler);
        if (compiler.ignored.size > 0) onIgnored(compiler.ignored);
        return call;
      }),
    ),
  );
  const one = builder.rule(call);
  const several = (between: string): Expression =>
    sequence(one, repeat(sequence(text(between), one), 0, parallel ? null : 0));
  if (format === "pythonic") return sequence(text("["), several(", "), text("]"));
  if (format === "glm45") return several("\n");
  const { first, separator, last } = CALL_SPELLINGS[format];
  return sequence(text(first), several(separator), text(last));
}

function oneCall(format: ToolCallFormat, tool: ToolSignature, compiler: SchemaCompiler): Expression {
  const { name } = tool;
  const schema = argumentSchema(tool.parameters);
  if (name === "") throw new GrammarError("a function to call needs a name");
  if (!namesOf(format).test(name)) throw new GrammarError(`the name cannot be written as a ${format} call`);
  if (format === "pythonic") return sequence(text(name), eachArgument(format, schema, compiler, callStyle));
  if (format === "glm45") {
    const members = eachArgument(format, schema, compiler, tagStyle);
    return sequence(text(`<tool_call>${name}\n`), members, text("</tool_call>"));
  }
  const { before, after } = CALL_SPELLINGS[format];
  return sequence(text(before(name)), compiler.compileRoot(schema), text(after));
}

/** The names that the parsers of text/tools can read. */
function namesOf(format: ToolCallFormat): RegExp {
  if (format === "pythonic") return /^[A-Za-z_][\w.-]*$/;
  return format === "glm45" ? /^[\w.-]+$/ : (CALL_SPELLINGS[format].names ?? /^/);
}

function argumentCompiler(format: ToolCallFormat, parameters: JsonValue, builder: GrammarBuilder): SchemaCompiler {
  const layout = jsonLayout({ compact: false, whitespacePattern: null });
  const words = format === "pythonic" ? { true: "True", false: "False", null: "None" } : layout.words;
  const options = { layout: { ...layout, words }, closedObjects: false, freeOrder: false, openObjects: false };
  return new SchemaCompiler(parameterSchema(parameters), options, builder);
}

function argumentSchema(parameters: JsonValue): Schema {
  return { allOf: [{ type: "object" }, parameterSchema(parameters) as JsonValue] };
}

/** Arguments that are written one by one, not as an object. */
function eachArgument(
  format: ToolCallFormat,
  schema: Schema,
  compiler: SchemaCompiler,
  style: ObjectStyle,
): Expression {
  const cases = compiler.cases.of(schema, "#");
  if (cases.length === 0) throw new GrammarError("the parameters allow no arguments at all");
  if (cases.some((each) => each.listed !== null)) {
    throw new GrammarError(
      `the schema keywords "enum" and "const" are not supported for the arguments of a ${format} call`,
    );
  }
  return choice(...cases.map((each) => compileObject(compiler, each, "#", style)));
}

const callStyle: ObjectStyle = {
  member: (name, value) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new GrammarError(`the parameter ${JSON.stringify(name.slice(0, 40))} is not an identifier`);
    }
    return sequence(text(`${name}=`), value);
  },
  extra: () => null,
  comma: text(", "),
  none: "()",
  wrap: (content) => sequence(text("("), content, text(")")),
};

/** GLM 4.5: a tag for every name and every value. */
const tagStyle: ObjectStyle = {
  member: (name, value) => {
    if (/[<\n]/.test(name) || name.trim() !== name) {
      throw new GrammarError(`the parameter ${JSON.stringify(name.slice(0, 40))} cannot be written as a tag`);
    }
    return sequence(text(`<arg_key>${name}</arg_key>\n<arg_value>`), value, text("</arg_value>\n"));
  },
  extra: () => null,
  comma: empty,
  none: "",
  wrap: (content) => content,
};

const noParameters: Schema = { type: "object", additionalProperties: false };

/** Keywords other than `properties` that can name or require properties. */
const OTHER_SOURCES = ["additionalProperties", "minProperties", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"];

/** A function without parameters is called without arguments: no schema, an empty schema, or no `properties`. */
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
    if (error instanceof GrammarError) {
      throw new GrammarError(`tool ${JSON.stringify(tool.name.slice(0, 64))}: ${error.message}`);
    }
    throw error;
  }
}
