// Wire schemas for structured output: response_format, structured_outputs, and guided_* for older clients.
import { Type } from "typebox";
import { AnyObject, orNull } from "./schema-parts.ts";

const JsonSchemaFormat = Type.Object({
  name: Type.String(),
  description: orNull(Type.String()),
  schema: orNull(AnyObject, { description: "The JSON Schema that the output must follow." }),
  strict: orNull(Type.Boolean(), { description: "Accepted without effect: the output always follows the schema." }),
});

export const ResponseFormat = Type.Object(
  {
    type: Type.Enum(["text", "json_object", "json_schema", "structural_tag"]),
    json_schema: orNull(JsonSchemaFormat),
    schema: orNull(AnyObject, { description: "json_object: the JSON Schema that the object must follow." }),
    format: Type.Optional(Type.Unknown({ description: "structural_tag: the tag's format." })),
    structures: Type.Optional(Type.Unknown({ description: "structural_tag, legacy form." })),
    triggers: Type.Optional(Type.Unknown({ description: "structural_tag, legacy form." })),
  },
  { title: "ResponseFormat" },
);

export const StructuredOutputs = Type.Object(
  {
    json: orNull(Type.Union([Type.String(), AnyObject]), { description: "A JSON Schema, as text or as an object." }),
    regex: orNull(Type.String(), { description: "The whole output must match this expression." }),
    choice: orNull(Type.Array(Type.String()), { description: "The output must be one of these." }),
    grammar: orNull(Type.String(), { description: "EBNF with a root rule, or Lark." }),
    json_object: orNull(Type.Boolean(), { description: "If true, the output must be a JSON object." }),
    structural_tag: orNull(Type.String(), { description: "A structural tag as JSON text." }),
    disable_fallback: Type.Optional(Type.Boolean({ default: false, description: "Accepted without effect." })),
    disable_any_whitespace: Type.Optional(Type.Boolean({ default: false, description: "Write compact JSON." })),
    disable_additional_properties: Type.Optional(
      Type.Boolean({ default: false, description: "Treat a missing additionalProperties as false." }),
    ),
    any_property_order: Type.Optional(
      Type.Boolean({ default: false, description: "Declared properties may come in any order." }),
    ),
    undeclared_properties: Type.Optional(
      Type.Boolean({ default: false, description: "Treat a missing additionalProperties as true." }),
    ),
    whitespace_pattern: orNull(Type.String(), { description: "A regular expression for whitespace in JSON." }),
    _backend: orNull(Type.String(), { description: "Accepted without effect." }),
    _backend_was_auto: Type.Optional(Type.Boolean({ default: false, description: "Accepted without effect." })),
  },
  { title: "StructuredOutputs" },
);

const older = (field: string) => ({ description: `Older name of structured_outputs.${field}.` });

export const guidedFields = {
  guided_json: orNull(Type.Union([Type.String(), AnyObject]), older("json")),
  guided_regex: orNull(Type.String(), older("regex")),
  guided_choice: orNull(Type.Array(Type.String()), older("choice")),
  guided_grammar: orNull(Type.String(), older("grammar")),
  guided_whitespace_pattern: orNull(Type.String(), older("whitespace_pattern")),
};
