// Compiles a constraint to the program that enforces it. Pure and deterministic; runs in the grammar worker. Every bad
// constraint ends in a GrammarError.

import { compileExpressions } from "./automaton/expression-compiler.ts";
import { linkProgram } from "./automaton/link.ts";
import type { Program } from "./automaton/program.ts";
import { withinEffort } from "./compile-effort.ts";
import type { ConstrainedOutput, OutputShape, ReasoningPrefix } from "./constraint.ts";
import {
  choice,
  type Expression,
  empty,
  type Grammar,
  GrammarBuilder,
  repeat,
  sequence,
  text,
  texts,
} from "./expression.ts";
import { GrammarError, TOO_DEEP } from "./grammar-error.ts";
import { JsonText, jsonLayout } from "./json-schema/json-text.ts";
import { type OnIgnored, schemaExpression } from "./json-schema/schema-compiler.ts";
import { structuralTag } from "./structural-tag.ts";
import { parseGrammarSource } from "./syntax/lark.ts";
import { parseRegex } from "./syntax/regex.ts";
import { textWithCalls, toolCallGrammar } from "./tool-call-grammar.ts";

/** `onIgnored` receives the schema keywords that no draft defines. They are annotations and have no effect. */
export function compileConstraint({ shape, reasoning }: ConstrainedOutput, onIgnored: OnIgnored = () => {}): Program {
  try {
    return withinEffort(() => {
      const builder = new GrammarBuilder();
      const output = shapeExpression(shape, builder, onIgnored);
      return linkProgram(compileExpressions(withReasoning(reasoning, output, builder)));
    });
  } catch (error) {
    // The translators are recursive. Input deep enough to exhaust the stack is refused.
    if (error instanceof RangeError) throw new GrammarError(TOO_DEEP);
    throw error;
  }
}

function shapeExpression(shape: OutputShape, builder: GrammarBuilder, onIgnored: OnIgnored): Expression {
  switch (shape.kind) {
    case "json_object":
      return new JsonText(builder, jsonLayout(shape.json)).anyObject;
    case "json_schema":
      return schemaExpression(shape.schema, shape.json, builder, onIgnored);
    case "regex":
      return parseRegex(shape.pattern, "full");
    case "choice":
      if (shape.choices.length === 0) throw new GrammarError("choice needs at least one string");
      if (shape.choices.some((value) => /\p{Surrogate}/u.test(value))) {
        throw new GrammarError("a choice contains half of a surrogate pair");
      }
      return texts(shape.choices);
    case "grammar":
      return parseGrammarSource(shape.source, builder);
    case "structural_tag":
      return structuralTag(shape.tag, shape.json, builder, onIgnored);
    case "tool_calls":
      return toolCallGrammar(shape, builder, onIgnored);
    case "calls_or":
      if (shape.answer === null) return textWithCalls(shape.calls, builder, onIgnored);
      return choice(
        shapeExpression(shape.calls, builder, onIgnored),
        shapeExpression(shape.answer, builder, onIgnored),
      );
    default:
      return shape satisfies never;
  }
}

/** Free text up to the end marker, then an optional blank line, then the output. */
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
