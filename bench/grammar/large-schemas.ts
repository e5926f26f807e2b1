// Schemas that are large in one way each, with texts to follow: what tools generate from tables, catalogues and unions.

type Json = Readonly<Record<string, unknown>>;

interface Large {
  schema: Json;
  valid: readonly unknown[];
  invalid: readonly unknown[];
}

const COUNT = 2000;

const LARGE: Readonly<Record<string, () => Large>> = {
  "optional strings": () =>
    optional(
      named((i) => [`field_${i}`, { type: "string" }]),
      "a value",
    ),
  "optional, names of words": () =>
    optional(
      named((i) => [words(i), { type: ["string", "null"] }]),
      "a value",
    ),
  "optional integers and lists": () =>
    optional(
      named((i) => [`${words(i)}s`, i % 2 ? { type: "integer" } : { items: { type: "integer" } }]),
      null,
    ),
  "optional, closed, in any order": () => ({
    ...optional(
      named((i) => [`field_${i}`, { type: "boolean" }]),
      true,
      { additionalProperties: false },
    ),
  }),
  "optional, at most 10": () =>
    optional(
      named((i) => [`field_${i}`, { type: "string" }]),
      "a value",
      { maxProperties: 10 },
    ),
  "half of them required": () => {
    const properties = named((i) => [`field_${i}`, { type: "string" }]);
    const required = Object.keys(properties).filter((_, i) => i % 2 === 0);
    const value = Object.fromEntries(required.map((name) => [name, "v"]));
    return { schema: { type: "object", properties, required }, valid: [value], invalid: [{ field_0: "v" }] };
  },
  "enum of strings": () => ({
    schema: { enum: list((i) => words(i)) },
    valid: [words(0), words(1234), words(1999)],
    invalid: [`${words(7)}x`],
  }),
  "enum of strings in an object": () => ({
    schema: { type: "object", properties: { kind: { enum: list((i) => words(i)) }, why: { type: "string" } } },
    valid: [{ kind: words(1999), why: "because" }],
    invalid: [{ kind: "none" }],
  }),
  "enum of objects": () => ({
    schema: { enum: list((i) => ({ id: i, name: words(i) })) },
    valid: [{ id: 1234, name: words(1234) }],
    invalid: [{ id: 1234, name: words(1235) }],
  }),
  "anyOf of constants": () => ({
    schema: { anyOf: list((i) => ({ const: i % 2 ? i : words(i) })) },
    valid: [words(1998), 1999],
    invalid: [2001],
  }),
  "oneOf of constants": () => ({
    schema: { oneOf: list((i) => ({ const: words(i), description: `the ${i}th` })) },
    valid: [words(1998)],
    invalid: ["x"],
  }),
  "anyOf of tagged objects": () => union("anyOf", true),
  "oneOf of tagged objects": () => union("oneOf", true),
  "anyOf of objects, one property each": () => union("anyOf", false),
  "anyOf of references": () => ({
    schema: {
      $defs: named((i) => [
        `d${i}`,
        { type: "object", properties: { [words(i)]: { type: "string" } }, required: [words(i)] },
      ]),
      anyOf: list((i) => ({ $ref: `#/$defs/d${i}` })),
    },
    valid: [{ [words(1234)]: "v" }],
    invalid: [3],
  }),
  "a list of tagged objects": () => ({
    schema: { type: "array", items: union("anyOf", true).schema },
    valid: [[tagged(3), tagged(1999), tagged(4)]],
    invalid: [[tagged(3), { ...tagged(4), kind: words(5) }]],
  }),
  "different lengths": () =>
    optional(
      named((i) => [`field_${i}`, { type: "string", maxLength: i + 1 }]),
      "a",
    ),
  "different patterns": () =>
    optional(
      named((i) => [`field_${i}`, { type: "string", pattern: `^[a-z]{1,9}-${i}$` }]),
      null,
    ),
};

/** All of them but the first, and a few that are far apart. */
function optional(properties: Json, value: unknown, more: Json = {}): Large {
  const schema = { type: "object", properties, ...more };
  const names = Object.keys(properties);
  const some = [3, 700, 701, 1500, 1999].map((i) => names[i]!);
  if (value === null) return { schema, valid: [{}], invalid: [{ [names[1]!]: {} }] };
  return { schema, valid: [Object.fromEntries(some.map((name) => [name, value]))], invalid: [{ [names[5]!]: 5 }] };
}

function union(keyword: "anyOf" | "oneOf", tags: boolean): Large {
  const branch = (i: number): Json => {
    const { kind, ...rest } = tagged(i);
    const properties: Record<string, Json> = tags ? { kind: { const: kind } } : {};
    for (const name of Object.keys(rest)) properties[name] = { type: "integer" };
    return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
  };
  const value = (i: number): unknown => {
    const { kind, ...rest } = tagged(i);
    return tags ? { kind, ...rest } : rest;
  };
  return {
    schema: { [keyword]: list(branch) },
    valid: [value(3), value(1999)],
    invalid: [{ kind: words(3), none: 1 }],
  };
}

function tagged(i: number): { kind: string; [name: string]: unknown } {
  return { kind: words(i), [`${words(i)}_count`]: i };
}

function named(member: (i: number) => readonly [string, unknown]): Json {
  return Object.fromEntries(list(member));
}

function list<T>(item: (i: number) => T): T[] {
  return Array.from({ length: COUNT }, (_, i) => item(i));
}

const FIRST =
  "account address amount balance branch card city client code country currency customer date delivery device".split(
    " ",
  );
const SECOND =
  "active base billing central daily default external final first gross home internal last local main net".split(" ");

/** Another name for every number below 2,400. */
function words(i: number): string {
  const [first, second] = [FIRST[i % FIRST.length]!, SECOND[Math.floor(i / FIRST.length) % SECOND.length]!];
  const third = Math.floor(i / FIRST.length / SECOND.length);
  return third === 0 ? `${second}_${first}` : `${second}_${first}_${third}`;
}

export const LARGE_NAMES: readonly string[] = Object.keys(LARGE);

export function largeCase(id: string) {
  const { schema, valid, invalid } = LARGE[id]!();
  const instances = [
    ...valid.map((value) => ({ text: spaced(value), valid: true })),
    ...invalid.map((value) => ({ text: spaced(value), valid: false })),
  ];
  return { id, schema: JSON.stringify(schema), instances };
}

/** As Python's json.dumps writes it. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`)
    .join(", ")}}`;
}
