// The official JSON Schema test suite, draft 2020-12. A schema that compiles must generate only valid values and reject every
// value that the suite calls invalid.

import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import type { JsonValue } from "../../src/grammar/json-schema/keywords.ts";
import { acceptsText } from "./accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, Walker } from "./walk.ts";

interface Case {
  description: string;
  schema: JsonValue;
  tests: { data: JsonValue; valid: boolean }[];
}

const file = new URL("../fixtures/json-schema-suite.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { cases: Case[] };
const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true });
const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

test("the suite has enough cases to be meaningful", () => {
  expect(cases.length).toBeGreaterThan(130);
});

test.each(cases.map((each) => [each.description, each] as const))("%s", (_, { schema, tests }) => {
  const key = keyOf({ kind: "json_schema", schema, json: plainJson });
  for (const { data, valid } of tests) {
    if (!valid) expect(acceptsText(key, JSON.stringify(data)), JSON.stringify(data)).toBe(false);
  }
  const validate = ajv.compile(schema as object | boolean);
  for (const walker of walkers) {
    for (let seed = 0; seed < 4; seed++) {
      const { text, finished } = walker.walk(key, seed, 40);
      expect(finished).toBe(true);
      expect(validate(JSON.parse(text)), text).toBe(true);
    }
  }
});
