// Random walks in two vocabularies. Every text that a schema's constraint generates must validate; ajv is the judge.

import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import type { JsonValue } from "../../src/grammar/json-schema/keywords.ts";
import { schemas } from "./schemas.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, Walker } from "./walk.ts";

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

describe.each(Object.entries(schemas))("%s", (_, schema) => {
  test("random walks validate and finish", () => {
    const validate = ajv.compile(schema as object);
    for (const json of [plainJson, { ...plainJson, compact: true }]) {
      const key = keyOf({ kind: "json_schema", schema: schema as JsonValue, json });
      for (const walker of walkers) {
        for (let seed = 0; seed < 12; seed++) {
          const { text, finished } = walker.walk(key, seed);
          expect(finished, text).toBe(true);
          const value: unknown = JSON.parse(text);
          expect(validate(value), `${text}\n${ajv.errorsText(validate.errors)}`).toBe(true);
          if (json.compact) expect(text.replace(/"(?:[^"\\]|\\.)*"/g, "")).not.toMatch(/\s/);
        }
      }
    }
  });
});
