// A constraint to the program that enforces it. Pure and deterministic; runs in the grammar worker. Every way a constraint
// can be bad ends in a GrammarError.

import { compileExpressions } from "./automaton/expression-compiler.ts";
import { linkProgram } from "./automaton/link.ts";
import type { Program } from "./automaton/program.ts";
import type { ConstrainedOutput, JsonOptions, OutputShape, ReasoningPrefix } from "./constraint.ts";
import { type Expression, empty, type Grammar, GrammarBuilder, repeat, sequence, text, texts } from "./expression.ts";
import { GrammarError, TOO_DEEP } from "./grammar-error.ts";
import { jsonLayout } from "./json-schema/json-layout.ts";
import { JsonText } from "./json-schema/json-text.ts";
import { isSchema, type Schema } from "./json-schema/keywords.ts";
import { SchemaCompiler } from "./json-schema/schema-compiler.ts";
import { structuralTag } from "./structural-tag.ts";
import { parseGrammarSource } from "./syntax/grammar-source.ts";
import { parseRegex } from "./syntax/regex.ts";
import { toolCallGrammar } from "./tool-call-grammar.ts";

export function compileConstraint({ shape, reasoning }: ConstrainedOutput): Program {
  try {
    const builder = new GrammarBuilder();
    const output = shapeExpression(shape, builder);
    return linkProgram(compileExpressions(withReasoning(reasoning, output, builder)));
  } catch (error) {
    // The translators recurse with their input; what is deep enough to exhaust the stack is refused like any excess.
    if (error instanceof RangeError) throw new GrammarError(TOO_DEEP);
    throw error;
  }
}

function shapeExpression(shape: OutputShape, builder: GrammarBuilder): Expression {
  switch (shape.kind) {
    case "json_object":
      return new JsonText(builder, jsonLayout(shape.json)).anyObject;
    case "json_schema":
      return schemaExpression(shape.schema, shape.json, builder);
    case "regex":
      return parseRegex(shape.pattern, "full");
    case "choice":
      if (shape.choices.length === 0) throw new GrammarError("choice needs at least one string");
      if (shape.choices.some((value) => /\p{Surrogate}/u.test(value)))
        throw new GrammarError("a choice contains half of a surrogate pair");
      return texts(shape.choices);
    case "grammar":
      return parseGrammarSource(shape.source, builder);
    case "structural_tag":
      return structuralTag(shape.tag, shape.json, builder);
    case "tool_calls":
      return toolCallGrammar(shape.format, shape.tools, shape.parallel, builder);
    default:
      return shape satisfies never;
  }
}

function schemaExpression(schema: unknown, options: JsonOptions, builder: GrammarBuilder): Expression {
  if (!isSchema(schema as Schema)) throw new GrammarError("a JSON schema must be an object");
  const compiler = new SchemaCompiler(
    schema as Schema,
    { layout: jsonLayout(options), closedObjects: options.closedObjects },
    builder,
  );
  return compiler.compile(schema as Schema, "#");
}

/** Free text up to the end marker, then at most a blank line, then the output. */
function withReasoning(reasoning: ReasoningPrefix | null, output: Expression, builder: GrammarBuilder): Grammar {
  if (!reasoning) return builder.finish(output);
  const thought: Expression = {
    kind: "dispatch",
    triggers: [reasoning.end],
    branches: [empty],
    loop: false,
    mayEnd: false,
  };
  const shared = builder.rule(output);
  const thenOutput = sequence(thought, repeat(text("\n"), 0, 2), shared);
  if (reasoning.mode === "open") return builder.finish(thenOutput);
  return { ...builder.finish(shared), afterMarker: { marker: reasoning.start, root: thenOutput } };
}
