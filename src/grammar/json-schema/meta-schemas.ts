// The schemas of schemas that drafts 4, 6 and 7 define. Documents may refer to them, and nothing needs to be fetched.

import type { JsonValue, SchemaObject } from "./keywords.ts";

type Draft = 4 | 6 | 7;

const DRAFTS: readonly Draft[] = [4, 6, 7];
const ADDRESS = /^https?:\/\/json-schema\.org\/draft-0([467])\/schema$/;
const ANY_SCHEMA = { $ref: "#" };
const SCHEMAS = { type: "object", additionalProperties: ANY_SCHEMA };
const TEXT = { type: "string" };
const FLAG = { type: "boolean" };
const NUMBER = { type: "number" };

const MADE = new Map<Draft, SchemaObject>();

/** The meta-schema at this address, without a fragment; null if no draft has it. */
export function metaSchema(address: string): SchemaObject | null {
  const draft = DRAFTS.find((each) => String(each) === ADDRESS.exec(address)?.[1]);
  if (draft === undefined) return null;
  let schema = MADE.get(draft);
  if (!schema) {
    schema = makeMetaSchema(draft);
    MADE.set(draft, schema);
  }
  return schema;
}

function makeMetaSchema(draft: Draft): SchemaObject {
  const count = draft === 4 ? "positiveInteger" : "nonNegativeInteger";
  const counted = { $ref: `#/definitions/${count}` };
  const countedFromZero = { $ref: `#/definitions/${count}Default0` };
  const several = { $ref: "#/definitions/schemaArray" };
  const texts = { $ref: "#/definitions/stringArray" };
  const anySchema = draft === 4 ? { anyOf: [FLAG, ANY_SCHEMA] } : ANY_SCHEMA;
  const simple = { $ref: "#/definitions/simpleTypes" };
  const limit = draft === 4 ? FLAG : NUMBER;
  const address = (format: string): JsonValue => (draft === 4 ? TEXT : { type: "string", format });
  /** Keywords that the draft has. */
  const from = (first: Draft, keywords: SchemaObject): SchemaObject => (draft >= first ? keywords : {});
  return {
    definitions: {
      schemaArray: { type: "array", minItems: 1, items: ANY_SCHEMA },
      [count]: { type: "integer", minimum: 0 },
      [`${count}Default0`]: counted,
      simpleTypes: { enum: ["array", "boolean", "integer", "null", "number", "object", "string"] },
      stringArray: {
        type: "array",
        items: TEXT,
        uniqueItems: true,
        ...(draft === 4 ? { minItems: 1 } : {}),
      },
    },
    type: draft === 4 ? "object" : ["object", "boolean"],
    properties: {
      ...(draft === 4 ? { id: TEXT } : { $id: address("uri-reference") }),
      $schema: address("uri"),
      ...from(6, { $ref: address("uri-reference") }),
      ...from(7, { $comment: TEXT }),
      title: TEXT,
      description: TEXT,
      default: draft === 4 ? {} : true,
      ...from(7, { readOnly: FLAG }),
      ...from(6, { examples: { type: "array" } }),
      multipleOf: { ...NUMBER, ...(draft === 4 ? { minimum: 0, exclusiveMinimum: true } : { exclusiveMinimum: 0 }) },
      maximum: NUMBER,
      exclusiveMaximum: limit,
      minimum: NUMBER,
      exclusiveMinimum: limit,
      maxLength: counted,
      minLength: countedFromZero,
      pattern: { type: "string", format: "regex" },
      additionalItems: anySchema,
      items: { anyOf: [ANY_SCHEMA, several] },
      maxItems: counted,
      minItems: countedFromZero,
      uniqueItems: FLAG,
      ...from(6, { contains: ANY_SCHEMA }),
      maxProperties: counted,
      minProperties: countedFromZero,
      required: texts,
      additionalProperties: anySchema,
      definitions: SCHEMAS,
      properties: SCHEMAS,
      patternProperties: { ...SCHEMAS, ...from(6, { propertyNames: { format: "regex" } }) },
      dependencies: { type: "object", additionalProperties: { anyOf: [ANY_SCHEMA, texts] } },
      ...from(6, { propertyNames: ANY_SCHEMA, const: true }),
      enum: { type: "array", minItems: 1, uniqueItems: true },
      type: { anyOf: [simple, { type: "array", items: simple, minItems: 1, uniqueItems: true }] },
      format: TEXT,
      ...from(7, { contentMediaType: TEXT, contentEncoding: TEXT }),
      ...from(7, Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, ANY_SCHEMA]))),
      allOf: several,
      anyOf: several,
      oneOf: several,
      not: ANY_SCHEMA,
    },
    ...(draft === 4 ? { dependencies: { exclusiveMaximum: ["maximum"], exclusiveMinimum: ["minimum"] } } : {}),
  };
}
