// Checks that a schema's constraint accepts valid values and rejects invalid ones. ajv confirms which values are valid, so a
// test cannot be wrong about the standard.

import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import type { JsonOptions } from "../../src/grammar/constraint.ts";
import type { JsonValue } from "../../src/grammar/json-schema/keywords.ts";
import { acceptsText } from "./accepts.ts";
import { byteVocabulary, keyOf, plainJson, Walker } from "./walk.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const walker = new Walker(byteVocabulary);

interface Judged {
  valid: readonly unknown[];
  invalid: readonly unknown[];
  json?: Partial<JsonOptions>;
}

/** Also generates random texts and checks that each of them validates. */
export function judge(schema: unknown, { valid, invalid, json = {} }: Judged): void {
  const key = keyOf({ kind: "json_schema", schema: schema as JsonValue, json: { ...plainJson, ...json } });
  const validate = ajv.compile(schema as object);
  for (const value of valid) {
    const text = JSON.stringify(value);
    expect(validate(value), `ajv rejects ${text}`).toBe(true);
    expect(acceptsText(key, text), `${text} is rejected`).toBe(true);
  }
  for (const value of invalid) {
    const text = JSON.stringify(value);
    expect(validate(value), `ajv accepts ${text}`).toBe(false);
    expect(acceptsText(key, text), `${text} is accepted`).toBe(false);
  }
  // With any names allowed, a random walk almost never writes a required one.
  for (let seed = 0; seed < (json.openObjects ? 0 : 6); seed++) {
    const { text, finished } = walker.walk(key, seed, 40);
    expect(finished, text).toBe(true);
    expect(validate(JSON.parse(text)), `generated ${text}`).toBe(true);
  }
}

/** Like judge, but without ajv: for formats and anything else it does not check. */
export function judgeTexts(schema: unknown, valid: readonly string[], invalid: readonly string[]): void {
  const key = keyOf({ kind: "json_schema", schema: schema as JsonValue, json: plainJson });
  for (const text of valid) expect(acceptsText(key, text), `${text} is rejected`).toBe(true);
  for (const text of invalid) expect(acceptsText(key, text), `${text} is accepted`).toBe(false);
}
