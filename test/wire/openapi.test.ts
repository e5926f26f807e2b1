import { readFileSync, writeFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { createTraining } from "../../src/app/training.ts";
import { sharedServer } from "./shared-server.ts";
import { says } from "./test-server.ts";

const server = sharedServer({ extensions: [createTraining] });
const file = new URL("../../openapi.json", import.meta.url);

it("openapi.json is what the server says", async () => {
  const document = await (await fetch(`${server.url}/openapi.json`)).json();
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if (process.env.UPDATE_DOCS === "1") writeFileSync(file, text);
  expect(readFileSync(file, "utf8")).toBe(text);
});

it("describes routes that exist, with schemas that compile and that a real exchange fits", async () => {
  const document = JSON.parse(readFileSync(file, "utf8"));
  expect(document.openapi).toBe("3.1.0");
  const ajv = new Ajv2020({ strict: false, formats: { int64: true } });
  let operations = 0;
  for (const [path, methods] of Object.entries<Record<string, Operation>>(document.paths)) {
    for (const [method, { requestBody, responses, security }] of Object.entries(methods)) {
      operations++;
      for (const schema of [requestBody, ...Object.values(responses)].flatMap(schemasOf)) ajv.compile(schema);
      // Without a token, a route that needs one says so before it looks anything up, and one that does not exist is a 404.
      const url = `${server.url}${path.replace(/\{\w+\}/g, "x")}`;
      const { status } = await fetch(url, { method: method.toUpperCase() });
      const needsToken = security === undefined || security.length > 0;
      if (needsToken) expect(status, `${method} ${path}`).toBe(401);
      else expect([404, 405], `${method} ${path}`).not.toContain(status);
    }
  }
  expect(operations).toBeGreaterThan(70);

  const chat = document.paths["/v1/chat/completions"].post;
  const request = ajv.compile(chat.requestBody.content["application/json"].schema);
  expect(request({ messages: says("x"), seed: 5, stop: ["a"] })).toBe(true);
  expect(request({ messages: "x" })).toBe(false);
  const reply = ajv.compile(chat.responses["200"].content["application/json"].schema);
  expect(
    reply(await server.chat({ messages: says("x"), logprobs: true, top_logprobs: 2 })),
    JSON.stringify(reply.errors),
  ).toBe(true);
});

interface Operation {
  requestBody?: Body;
  responses: Record<string, Body>;
  security?: unknown[];
}

type Body = { content?: Record<string, { schema?: object }> };

const schemasOf = (body: Body | undefined) =>
  Object.values(body?.content ?? {}).flatMap(({ schema }) => (schema === undefined ? [] : [schema]));

it("says which errors every route gives, each once", () => {
  const { paths, components } = JSON.parse(readFileSync(file, "utf8"));
  for (const [path, methods] of Object.entries<Record<string, { security?: []; responses: object }>>(paths)) {
    for (const { security, responses } of Object.values(methods)) {
      if (security === undefined)
        expect(Object.keys(responses), path).toEqual(expect.arrayContaining(["401", "403", "503"]));
      for (const [, name] of JSON.stringify(responses).matchAll(/#\/components\/responses\/(\w+)/g)) {
        expect(components.responses).toHaveProperty(name!);
      }
    }
  }
  const given = (method: string, path: string) => Object.keys(paths[path][method].responses);
  for (const path of [
    "/v1/chat/completions",
    "/v1/messages",
    "/inference/v1/generate",
    "/v1/structured_outputs/inspect",
  ]) {
    expect(given("post", path), path).toEqual(expect.arrayContaining(["400", "404", "409", "429"]));
  }
  for (const path of ["/tokenize", "/detokenize", "/v1/messages/count_tokens", "/invocations"]) {
    expect(given("post", path), path).toEqual(expect.arrayContaining(["400", "404", "429"]));
  }
  for (const path of ["/v1/preview/models", "/v1/preview/training-jobs", "/v1/training/runs:resolve"]) {
    expect(given("post", path), path).toEqual(expect.arrayContaining(["404", "409", "422", "429", "507"]));
  }
  expect(given("get", "/v1/preview/models/{id}")).toContain("404");
});

it("renders the reference page without scripts or downloads", async () => {
  const response = await fetch(`${server.url}/docs`);
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  const html = await response.text();
  for (const field of ["repetition_detection", "truncate_prompt_tokens", "/v1/load_lora_adapter", "return_token_ids"]) {
    expect(html).toContain(field);
  }
  expect(html).not.toMatch(/<script|<link|https?:\/\//);
});
