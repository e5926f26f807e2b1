// The text of tool calls, in each format that text/tools can read. Calls follow the tools' parameter schemas, and the grammars of
// custom tools, so every generated call parses and validates.

import type { TextGrammar, ToolCallFormat, ToolCallsShape, ToolSignature } from "./constraint.ts";
import { choice, type Expression, empty, type GrammarBuilder, repeat, sequence, text } from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";
import { jsonEncodedGrammar } from "./json-encoded.ts";
import { jsonLayout } from "./json-schema/json-text.ts";
import { isObject, isSchema, type JsonValue, type Schema } from "./json-schema/keywords.ts";
import { compileObject, type ObjectStyle } from "./json-schema/objects/objects.ts";
import { type OnIgnored, SchemaCompiler } from "./json-schema/schema-compiler.ts";
import { parseLark } from "./syntax/lark.ts";
import { parseRegex } from "./syntax/regex.ts";
import { CALL_SPELLINGS } from "./tool-call-spelling.ts";

/** A reply that consists of calls. */
export function toolCallGrammar(shape: ToolCallsShape, builder: GrammarBuilder, onIgnored: OnIgnored): Expression {
  const { format, parallel } = shape;
  const one = builder.rule(anyCall(shape, builder, onIgnored, ""));
  if (format === "pythonic") return sequence(text("["), several(one, ", ", parallel), text("]"));
  if (format === "glm45") return several(one, "\n", parallel);
  const { first, separator, last } = CALL_SPELLINGS[format];
  return sequence(text(first), several(one, separator, parallel), text(last));
}

/** Any text. Where the parser would find calls in it, there are calls of these tools. */
export function textWithCalls(shape: ToolCallsShape, builder: GrammarBuilder, onIgnored: OnIgnored): Expression {
  const { format, parallel } = shape;
  const calls = (mark: string): Expression => builder.rule(anyCall(shape, builder, onIgnored, mark));
  const inText = (triggers: readonly string[], branches: readonly Expression[]): Expression => {
    return { kind: "dispatch", triggers, branches, loop: parallel, mayEnd: true };
  };
  if (format === "glm45") return inText([GLM_MARK], [calls(GLM_MARK)]);
  if (format === "pythonic" || format === "llama3_json") {
    const other = format === "pythonic" ? NO_LIST : NO_OBJECT;
    return choice(toolCallGrammar(shape, builder, onIgnored), parseRegex(other, "full"));
  }
  const { marks, separator, last } = CALL_SPELLINGS[format];
  const list = marks.some((mark) => mark.list !== null) ? several(calls(""), separator, parallel) : empty;
  return inText(
    marks.map(({ mark }) => mark),
    marks.map((mark) => (mark.list === null ? calls(mark.mark) : sequence(text(mark.list), list, text(last)))),
  );
}

const GLM_MARK = "<tool_call>";
/** Replies that do not begin like calls. */
const NO_LIST = "\\s*(?:[^\\s\\[][\\s\\S]*)?";
const NO_OBJECT = "\\s*(?:[^\\s{<][\\s\\S]*|<(?:[^|][\\s\\S]*)?)?";

function several(one: Expression, between: string, parallel: boolean): Expression {
  return sequence(one, repeat(sequence(text(between), one), 0, parallel ? null : 0));
}

/** A call of any of the tools. `mark`: the part of it that is there already. */
function anyCall(
  { format, tools }: ToolCallsShape,
  builder: GrammarBuilder,
  onIgnored: OnIgnored,
  mark: string,
): Expression {
  return choice(
    ...tools.map((tool) =>
      named(tool, () => {
        const compiler = argumentCompiler(format, tool.parameters, builder);
        const call = oneCall(format, tool, compiler, mark);
        if (compiler.ignored.size > 0) onIgnored(compiler.ignored);
        return call;
      }),
    ),
  );
}

function oneCall(format: ToolCallFormat, tool: ToolSignature, compiler: SchemaCompiler, mark: string): Expression {
  const { name } = tool;
  if (name === "") throw new GrammarError("a function to call needs a name");
  if (!namesOf(format).test(name)) throw new GrammarError(`the name cannot be written as a ${format} call`);
  const style = format === "pythonic" ? callStyle : format === "glm45" ? tagStyle : null;
  const args = tool.input ? inputArgument(tool.input, compiler, style) : anyArguments(format, tool, compiler, style);
  if (format === "pythonic") return sequence(text(name), args);
  if (format === "glm45") return sequence(text(`${GLM_MARK}${name}\n`.slice(mark.length)), args, text("</tool_call>"));
  const { before, after } = CALL_SPELLINGS[format];
  return sequence(text(before(name).slice(mark.length)), args, text(after));
}

/** `style`: how arguments are written one by one; null = as one object. */
function anyArguments(
  format: ToolCallFormat,
  { parameters }: ToolSignature,
  compiler: SchemaCompiler,
  style: ObjectStyle | null,
): Expression {
  const schema = argumentSchema(parameters);
  return style === null ? compiler.compileRoot(schema) : eachArgument(format, schema, compiler, style);
}

/** The text of a custom tool, as a string of JSON. */
function inputArgument(grammar: TextGrammar, { text: json }: SchemaCompiler, style: ObjectStyle | null): Expression {
  const content = jsonEncodedGrammar(json.builder, (own) => parseTextGrammar(grammar, own));
  const input = json.quoted(content);
  return style === null
    ? sequence(text('{"input": '), input, text("}"))
    : style.wrap(style.member("input", input), false);
}

function parseTextGrammar({ syntax, definition }: TextGrammar, builder: GrammarBuilder): Expression {
  return syntax === "regex" ? parseRegex(definition, "full") : parseLark(definition, builder);
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
