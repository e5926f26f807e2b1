// Random JSON schemas that combine keywords freely. Names, texts and numbers come from small sets, so that keywords meet.

import fc from "fast-check";

export type Draft = "2020-12" | "7";
export type AnySchema = { readonly [keyword: string]: unknown };

const URIS: Readonly<Record<Draft, string>> = {
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
  "7": "http://json-schema.org/draft-07/schema#",
};
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const NAMES = ["a", "b", "c", "ab"];
const PATTERNS = ["^a", "b$", "^[ab]*$", "^[ab]{1,2}$", "c", "^.$", "^(a|bc)+$", "^$"];
const SCALARS = [null, true, false, 0, 1, 2, -3, 1.5, 10, "", "a", "b", "ab", "abc", "ccc"];

const name = fc.constantFrom(...NAMES);
const scalar = fc.constantFrom(...SCALARS);
const count = fc.integer({ min: 0, max: 3 });
const number = fc.constantFrom(-3, -1, 0, 0.5, 1, 2, 7, 10);

/** Values that schemas may mention, and that a search for a valid value tries. */
export const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    { weight: 4, arbitrary: scalar },
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

/** The schema declares its draft. */
export function randomSchema(draft: Draft): fc.Arbitrary<AnySchema> {
  const newest = draft === "2020-12";
  const definitions = newest ? "$defs" : "definitions";
  const { schema } = fc.letrec<{ schema: AnySchema | boolean; fragment: AnySchema }>((tie) => {
    const inner = tie("schema");
    const list = fc.array(inner, { minLength: 1, maxLength: 3 });
    const members = fc.dictionary(name, inner, { minKeys: 1, maxKeys: 3, noNullPrototype: true });
    const names = fc.uniqueArray(name, { minLength: 1, maxLength: 2 });
    const any = (given: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<AnySchema> =>
      fc.record(given, { requiredKeys: [], noNullPrototype: true });
    const type = fc.constantFrom(...TYPES);
    const leaf: fc.Arbitrary<AnySchema>[] = [
      any({ type }).filter(({ type }) => type !== undefined),
      fc.record({ type, nullable: fc.constant(true) }),
      fc.record({ type: fc.uniqueArray(type, { minLength: 1, maxLength: 3 }) }),
      fc.record({ const: value }),
      fc.record({
        enum: fc.uniqueArray(value, { minLength: 1, maxLength: 4, selector: (each) => JSON.stringify(each) }),
      }),
      any({ minimum: number, maximum: number, exclusiveMinimum: number, exclusiveMaximum: number }),
      fc.record({ multipleOf: fc.constantFrom(0.5, 2, 3, 7, 900) }),
      any({ minLength: count, maxLength: count }),
      fc.record({ pattern: fc.constantFrom(...PATTERNS) }),
      any({ minItems: count, maxItems: count, uniqueItems: fc.boolean() }),
      any({ minProperties: count, maxProperties: count }),
      fc.record({ required: names }),
      fc.record({ $ref: fc.constantFrom(`#/${definitions}/p`, `#/${definitions}/q`) }),
    ];
    const nested: fc.Arbitrary<AnySchema>[] = [
      any({ properties: members, required: names, additionalProperties: inner }),
      any({
        patternProperties: fc.dictionary(fc.constantFrom(...PATTERNS), inner, {
          minKeys: 1,
          maxKeys: 2,
          noNullPrototype: true,
        }),
        additionalProperties: inner,
      }),
      fc.record({ propertyNames: inner }),
      newest ? any({ prefixItems: list, items: inner }) : any({ items: fc.oneof(inner, list), additionalItems: inner }),
      newest ? any({ contains: inner, minContains: count, maxContains: count }) : fc.record({ contains: inner }),
      fc.record({ anyOf: list }),
      fc.record({ oneOf: list }),
      fc.record({ allOf: list }),
      fc.record({ not: inner }),
      any(Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, inner]))),
      newest
        ? any({
            dependentRequired: fc.dictionary(name, names, { minKeys: 1, maxKeys: 2, noNullPrototype: true }),
            dependentSchemas: fc.dictionary(name, inner, { minKeys: 1, maxKeys: 2, noNullPrototype: true }),
          })
        : fc.record({
            dependencies: fc.dictionary(name, fc.oneof(names, inner), {
              minKeys: 1,
              maxKeys: 2,
              noNullPrototype: true,
            }),
          }),
    ];
    return {
      fragment: fc.oneof({ depthSize: "small", withCrossShrink: true }, ...leaf, ...nested),
      schema: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        { weight: 1, arbitrary: fc.boolean() },
        { weight: 9, arbitrary: fc.array(tie("fragment"), { minLength: 1, maxLength: 3 }).map(merged) },
      ),
    };
  });
  const whole = schema.filter((each) => typeof each === "object") as fc.Arbitrary<AnySchema>;
  return fc
    .record({ root: whole, p: schema, q: schema })
    .map(({ root, p, q }) => ({ ...root, [definitions]: { p, q }, $schema: URIS[draft] }));
}

function merged(fragments: readonly AnySchema[]): AnySchema {
  return Object.assign({}, ...fragments);
}
