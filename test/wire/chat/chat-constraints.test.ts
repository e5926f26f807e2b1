// Structured output, and controls that leave nothing to say.
import { describe, expect, it } from "vitest";
import { babble, sharedServer } from "../../support/shared-server.ts";

const server = sharedServer();

it("constrains output and refuses what cannot be compiled, without harm to others", async () => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  };
  const wanted = [
    { response_format: { type: "json_schema", json_schema: { name: "n", schema } } },
    { structured_outputs: { json: JSON.stringify(schema) } },
    { structured_outputs: { regex: "[a-c]{3}" } },
    { structured_outputs: { choice: ["left", "right"] } },
    { structured_outputs: { grammar: 'root ::= "yes" | "no"' } },
    { response_format: { type: "json_object", schema } },
    { guided_json: schema },
    { guided_regex: "[a-c]{3}" },
    { guided_choice: ["left", "right"] },
    { guided_grammar: 'root ::= "yes" | "no"' },
  ];
  const replies = await Promise.all(wanted.map((body) => server.chat({ ...babble, ...body, max_tokens: 200 })));
  const texts = replies.map((reply) => reply.choices[0].message.content);
  for (const i of [0, 1, 5, 6]) expect(Number.isInteger(JSON.parse(texts[i]).a)).toBe(true);
  for (const i of [2, 7]) expect(texts[i]).toMatch(/^[a-c]{3}$/);
  for (const i of [3, 8]) expect(["left", "right"]).toContain(texts[i]);
  for (const i of [4, 9]) expect(["yes", "no"]).toContain(texts[i]);
});

it("lets members come in any order, and undeclared ones, where the request says so", async () => {
  const json = { type: "object", properties: { a: { const: 1 }, b: { const: 2 } }, required: ["a", "b"] };
  const preferring = async (letter: string, options: object) => {
    const structured_outputs = { json, disable_any_whitespace: true, ...options };
    const logit_bias = { [letter.charCodeAt(0)]: 100 };
    const reply = await server.chat({ ...babble, structured_outputs, logit_bias, max_tokens: 13 });
    return reply.choices[0].message.content;
  };
  expect(await preferring("b", {})).toBe('{"a":1,"b":2}');
  expect(await preferring("b", { any_property_order: true })).toBe('{"b":2,"a":1}');
  expect(await preferring("z", {})).toBe('{"a":1,"b":2}');
  expect(await preferring("z", { undeclared_properties: true })).toMatch(/^\{"z/);
});

describe("controls that leave no token", () => {
  const ids = (text: string) => [...Buffer.from(text)];
  const cases = [
    [
      "allowed_token_ids and bad_words",
      { allowed_token_ids: ids("q"), bad_words: ["q"] },
      /allowed_token_ids, bad_words/,
    ],
    [
      "a constraint and allowed_token_ids",
      { structured_outputs: { choice: ["left"] }, allowed_token_ids: ids("x") },
      /constraint, allowed_token_ids/,
    ],
    [
      "a constraint and bad_words, after some output",
      { structured_outputs: { regex: "[a-c]{2}q" }, bad_words: ["q"], logprobs: true },
      /position 2: the structured-output constraint, bad_words/,
    ],
    ["min_tokens and allowed_token_ids", { allowed_token_ids: [2], min_tokens: 3 }, /allowed_token_ids, min_tokens/],
  ] as const;

  it.each(cases)("answers 400 that names them, or an error event in a stream: %s", async (_name, fields, message) => {
    const body = { ...babble, ...fields, max_tokens: 20 };
    const response = await server.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    const { error } = await response.json();
    expect(error).toEqual({ message: expect.stringMatching(message), type: "BadRequestError", param: null, code: 400 });
    const events = await server.stream(body);
    expect(events.at(-1)).toEqual({ error });
    expect(events.some((event) => event.choices?.[0].finish_reason)).toBe(false);
    // No role chunk where no token came.
    expect("choices" in events[0]).toBe(/position [1-9]/.test(error.message));
  });

  it("does not matter after the end of the reply, however far the forced text reaches", async () => {
    const forced = { ...babble, structured_outputs: { choice: ["hello world"] } };
    const end = async (fields: object) => {
      const { message, ...rest } = (await server.chat({ ...forced, ...fields, return_token_ids: true })).choices[0];
      return { text: message.content, tokens: rest.token_ids.length, finish: rest.finish_reason, by: rest.stop_reason };
    };
    const stopped = { text: "he", tokens: 3, finish: "stop", by: "l" };
    expect(await end({ bad_words: ["wo"], stop: ["l"] })).toEqual(stopped);
    expect(await end({ stop_token_ids: ids("w"), stop: ["l"] })).toEqual(stopped);
    const cut = { text: "hello", tokens: 5, finish: "length", by: null };
    expect(await end({ stop_token_ids: ids("w"), max_tokens: 5 })).toEqual(cut);
  });

  it("answers 400 that names stop_token_ids when only stop tokens could continue the constraint", async () => {
    const body = { ...babble, structured_outputs: { choice: ["left"] }, stop_token_ids: ids("t") };
    const response = await server.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    const { error } = await response.json();
    expect(error).toMatchObject({ param: "structured_outputs", message: expect.stringMatching(/stop_token_ids/) });
    const events = await server.stream(body);
    expect(events.map((event) => event.choices?.[0].delta.content ?? "").join("")).toBe("lef");
    expect(events.at(-1)).toEqual({ error });
  });

  it("answers 400 to a grammar that is too ambiguous to follow", async () => {
    const grammar = 'root ::= s\ns ::= s s s | s s | "a" | ""';
    const body = { ...babble, structured_outputs: { grammar }, max_tokens: 500, ignore_eos: true };
    const response = await server.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    expect((await response.json()).error).toEqual(
      expect.objectContaining({
        type: "BadRequestError",
        param: "structured_outputs",
        message: expect.stringMatching(/ambiguous/),
      }),
    );
  });
});
