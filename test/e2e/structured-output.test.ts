// Structured output and forced tool calls over HTTP on the real engine: conforming output, mixed load, malformed
// constraints. The default checkpoint has random weights, so that every path is likely. FLYWHEEL_TEST_CHECKPOINT=FOLDER and
// FLYWHEEL_TEST_SEEDS=200 select others.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";

const checkpoint = process.env.FLYWHEEL_TEST_CHECKPOINT ?? fileURLToPath(new URL("../fixtures/llama", import.meta.url));
const seeds = Number(process.env.FLYWHEEL_TEST_SEEDS ?? 6);
const minutes = 60_000 * (seeds > 20 ? 20 : 1);

// biome-ignore lint/suspicious/noExplicitAny: replies are read without a schema
type Loose = any;

let server: StartedServer;

beforeAll(async () => {
  const config = loadConfig({
    env: {},
    flags: {
      model: checkpoint,
      port: 0,
      data: mkdtempSync(join(tmpdir(), "structured-")),
      apiKey: ["k"],
      logLevel: "error",
      enableAutoToolChoice: true,
      toolCallParser: "hermes",
      servedModelName: ["m"],
      maxModelLen: process.env.FLYWHEEL_TEST_CHECKPOINT === undefined ? 512 : 2048,
    },
  });
  server = await startServer(config, loadModel);
});

afterAll(() => server?.close());

async function post(body: Record<string, unknown>): Promise<{ status: number; body: Loose }> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer k", "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Go." }], temperature: 1.5, max_tokens: 250, ...body }),
  });
  return { status: response.status, body: await response.json() };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const person = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 130 },
    height: { type: "number", minimum: 0.3, exclusiveMaximum: 2.5 },
    tags: { type: "array", items: { enum: ["a", "b", "c"] }, maxItems: 3 },
    born: { type: "string", format: "date" },
    partner: { anyOf: [{ type: "null" }, { $ref: "#/$defs/short" }] },
  },
  required: ["name", "age", "partner"],
  additionalProperties: false,
  $defs: {
    short: { type: "object", properties: { id: { type: "string", pattern: "^[A-Z]{2}\\d{2}$" } }, required: ["id"] },
  },
};
const isPerson = ajv.compile(person);
const flat = { type: "object", additionalProperties: { type: "integer" }, maxProperties: 3 };
const isFlat = ajv.compile(flat);

type Kind = { fields: Record<string, unknown>; check: (text: string) => boolean };

const kinds: Record<string, Kind> = {
  "response_format json_schema": {
    fields: { response_format: { type: "json_schema", json_schema: { name: "person", schema: person } } },
    check: (text) => isPerson(JSON.parse(text)),
  },
  "json as text, compact": {
    fields: { structured_outputs: { json: JSON.stringify(flat), disable_any_whitespace: true } },
    check: (text) => isFlat(JSON.parse(text)) && !/\s/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, "")),
  },
  "response_format json_object": {
    fields: { response_format: { type: "json_object" } },
    check: (text) => typeof JSON.parse(text) === "object",
  },
  regex: {
    fields: { structured_outputs: { regex: "(?:[A-Z][a-z]{1,5} ){1,3}\\d{4}-\\d{2}" } },
    check: (text) => /^(?:[A-Z][a-z]{1,5} ){1,3}\d{4}-\d{2}$/.test(text),
  },
  choice: {
    fields: { structured_outputs: { choice: ["yes", "no", "perhaps später"] } },
    check: (text) => ["yes", "no", "perhaps später"].includes(text),
  },
  "EBNF grammar": {
    fields: { structured_outputs: { grammar: 'root ::= "(" e ")"\ne ::= n | e [+*] n\nn ::= [0-9]{1,2}' } },
    check: (text) => /^\(\d{1,2}([+*]\d{1,2})*\)$/.test(text),
  },
  "Lark grammar": {
    fields: {
      structured_outputs: {
        grammar:
          'start: "SELECT" NAME ("," NAME)~0..3 "FROM" NAME\nNAME: /[a-z]{1,4}/\n%import common.WS_INLINE\n%ignore " "',
      },
    },
    check: (text) => /^ ?SELECT ?[a-z]{1,4}( ?, ?[a-z]{1,4}){0,3} ?FROM ?[a-z]{1,4} ?$/.test(text),
  },
  "structural tag": {
    fields: {
      response_format: {
        type: "structural_tag",
        format: {
          type: "tags_with_separator",
          separator: ";",
          at_least_one: true,
          tags: [
            {
              type: "tag",
              begin: "<n>",
              content: { type: "json_schema", json_schema: { type: "integer", minimum: 5, maximum: 70 } },
              end: "</n>",
            },
          ],
        },
      },
    },
    check: (text) =>
      text
        .split(";")
        .every(
          (part) =>
            /^<n>\d+(\.0+)?<\/n>$/.test(part) && Number(part.slice(3, -4)) >= 5 && Number(part.slice(3, -4)) <= 70,
        ),
  },
};

describe.each(Object.entries(kinds))("%s", (_, { fields, check }) => {
  test(`conforms for ${seeds} seeds at temperature 1.5`, { timeout: minutes }, async () => {
    let ended = 0;
    for (let seed = 0; seed < seeds; seed += 8) {
      const batch = Array.from({ length: Math.min(8, seeds - seed) }, (_, i) => post({ ...fields, seed: seed + i }));
      for (const { status, body } of await Promise.all(batch)) {
        expect(status, JSON.stringify(body)).toBe(200);
        const [choice] = body.choices;
        expect(["stop", "length"]).toContain(choice.finish_reason);
        if (choice.finish_reason === "length") continue;
        ended++;
        expect(check(choice.message.content), choice.message.content).toBe(true);
      }
    }
    expect(ended).toBeGreaterThan(seeds * 0.3);
  });
});

test("forced tool calls always parse and conform", { timeout: minutes }, async () => {
  const tools = [{ type: "function", function: { name: "save", parameters: person } }];
  for (const tool_choice of ["required", { type: "function", function: { name: "save" } }]) {
    const calls = Array.from({ length: Math.min(seeds, 12) }, (_, seed) =>
      post({ tools, tool_choice, seed, parallel_tool_calls: false, max_tokens: 300 }),
    );
    let ended = 0;
    for (const { status, body } of await Promise.all(calls)) {
      expect(status, JSON.stringify(body)).toBe(200);
      const [choice] = body.choices;
      if (choice.finish_reason === "length") continue;
      ended++;
      expect(choice.finish_reason).toBe(typeof tool_choice === "string" ? "tool_calls" : "stop");
      expect(choice.message.tool_calls).toHaveLength(1);
      expect(isPerson(JSON.parse(choice.message.tool_calls[0].function.arguments))).toBe(true);
    }
    expect(ended).toBeGreaterThan(0);
  }
});

test("log-probabilities are normalized over the legal tokens", async () => {
  const { body } = await post({
    ...kinds.choice!.fields,
    seed: 1,
    logprobs: true,
    top_logprobs: 20,
    return_token_ids: true,
  });
  const entries = body.choices[0].logprobs.content;
  expect(entries).toHaveLength(body.choices[0].token_ids.length);
  const first = Object.fromEntries(entries[0].top_logprobs.map((entry: Loose) => [entry.token, entry.logprob]));
  const total = Object.values(first).reduce((sum: number, value) => sum + Math.exp(value as number), 0);
  // Fewer than twenty tokens can start a choice, so the list has all of them.
  expect(total).toBeCloseTo(1, 3);
  for (const entry of entries) expect(entry.logprob).toBeLessThanOrEqual(0);
});

test("the same seed gives the same constrained output, alone and in a batch", async () => {
  const request = { ...kinds["response_format json_schema"]!.fields, seed: 11, return_token_ids: true };
  const alone = await post(request);
  const together = await Promise.all([
    post(request),
    ...Object.values(kinds).map(({ fields }, i) => post({ ...fields, seed: i })),
    post(request),
  ]);
  for (const reply of [together[0]!, together.at(-1)!]) {
    expect(reply.body.choices[0].token_ids).toEqual(alone.body.choices[0].token_ids);
  }
});

test("n, stop, min_tokens, ignore_eos and max_tokens work with constraints", async () => {
  const { fields } = kinds.choice!;
  const several = await post({ ...fields, n: 4, seed: 5 });
  expect(several.body.choices).toHaveLength(4);
  for (const choice of several.body.choices) expect(kinds.choice!.check(choice.message.content)).toBe(true);
  const cut = await post({ structured_outputs: { regex: "a{40}" }, max_tokens: 7 });
  expect(cut.body.choices[0]).toMatchObject({
    finish_reason: "length",
    message: { content: expect.stringMatching(/^a+$/) },
  });
  const stopped = await post({ structured_outputs: { regex: "ab{30}c" }, stop: ["bbb"] });
  expect(stopped.body.choices[0]).toMatchObject({
    finish_reason: "stop",
    stop_reason: "bbb",
    message: { content: "a" },
  });
  const lifted = await post({ structured_outputs: { choice: ["done"] }, ignore_eos: true, max_tokens: 30 });
  expect(lifted.body.choices[0].message.content).toMatch(/^done/);
  expect(lifted.body.usage.completion_tokens).toBe(30);
  const long = await post({ structured_outputs: { regex: "a{6,9}" }, min_tokens: 6, max_tokens: 30 });
  expect(long.body.choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { content: expect.stringMatching(/^a{6,9}$/) },
  });
});

test("answers 32 constrained and free requests at once, some streamed", async () => {
  const all = Object.values(kinds);
  const replies = await Promise.all(
    Array.from({ length: 32 }, async (_, i) => {
      const kind = i % 3 === 2 ? null : all[i % all.length]!;
      if (i % 4 === 1) return streamed({ ...kind?.fields, seed: i }, kind);
      const { status, body } = await post({ ...kind?.fields, seed: i });
      expect(status).toBe(200);
      return { kind, finish: body.choices[0].finish_reason, text: body.choices[0].message.content };
    }),
  );
  for (const { kind, finish, text } of replies)
    if (kind && finish === "stop") expect(kind.check(text), text).toBe(true);
});

async function streamed(fields: Record<string, unknown>, kind: Kind | null) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer k", "content-type": "application/json" },
    body: JSON.stringify({
      messages: [{ role: "user", content: "Go." }],
      temperature: 1.5,
      max_tokens: 250,
      stream: true,
      ...fields,
    }),
  });
  let text = "";
  let finish: string | null = null;
  for (const event of (await response.text()).split("\n\n")) {
    if (!event.startsWith("data: {")) continue;
    const [choice] = JSON.parse(event.slice(6)).choices as Loose[];
    text += choice?.delta.content ?? "";
    finish = choice?.finish_reason ?? finish;
  }
  return { kind, finish, text };
}

test("refuses a thousand malformed constraints with 400, without harm or memory growth", async () => {
  const bad = (i: number): Record<string, unknown> => {
    const kinds = [
      { structured_outputs: { regex: `(${i}` } },
      { structured_outputs: { regex: `(?=${i})` } },
      { structured_outputs: { regex: `(?:[a-f]?){${100_000 + i}}` } },
      { structured_outputs: { grammar: `root ::= "a" x${i}` } },
      { structured_outputs: { grammar: `start: x${i}` } },
      { structured_outputs: { json: `{"type": ${i}` } },
      { structured_outputs: { json: { type: "string", minLength: -1 - i } } },
      { structured_outputs: { choice: [] } },
      { structured_outputs: { structural_tag: `{"format":{"type":"t${i}"}}` } },
      { response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: `t${i}` } } } },
      { response_format: { type: "json_schema", json_schema: { name: "x", schema: { $ref: `other${i}.json` } } } },
      { structured_outputs: { regex: "a", choice: ["b"] } },
    ];
    return kinds[i % kinds.length]!;
  };
  const round = async (from: number, to: number) => {
    for (let i = from; i < to; i += 50) {
      const replies = await Promise.all(Array.from({ length: 50 }, (_, k) => post(bad(i + k))));
      for (const { status, body } of replies) {
        expect(status, JSON.stringify(body)).toBe(400);
        expect(body.error.message.length).toBeGreaterThan(5);
      }
    }
  };
  await round(0, 500);
  const before = process.memoryUsage().rss;
  await round(500, 1000);
  const grown = process.memoryUsage().rss - before;
  expect(grown).toBeLessThan(150e6);
  expect((await post({ ...kinds.choice!.fields, seed: 1 })).status).toBe(200);
});
