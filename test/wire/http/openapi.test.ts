import { readFileSync, writeFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { createTraining } from "../../../src/app/training.ts";
import { sharedServer } from "../../support/shared-server.ts";
import { says } from "../../support/test-server.ts";

const server = sharedServer({ extensions: [createTraining] });
const file = new URL("../../../openapi.json", import.meta.url);

it("openapi.json is what the server says", async () => {
  const document = await (await fetch(`${server.url}/openapi.json`)).json();
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if (process.env.UPDATE_DOCS === "1") writeFileSync(file, text);
  expect(readFileSync(file, "utf8")).toBe(text);
});

it("describes routes that exist, with schemas that compile and that a real exchange fits", async () => {
  const document = JSON.parse(readFileSync(file, "utf8"));
  expect(document.openapi).toBe("3.1.0");
  const ajv = new Ajv2020({ strict: false, formats: { int64: true, uuid: true, "date-time": true } });
  ajv.addSchema(document, "openapi.json");
  const schemaAt = (...place: string[]) => {
    const pointer = place.map((name) => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
    return ajv.compile({ $ref: `openapi.json#/${pointer}` });
  };
  let operations = 0;
  for (const [path, methods] of Object.entries<Record<string, Operation>>(document.paths)) {
    for (const [method, { requestBody, responses, security }] of Object.entries(methods)) {
      operations++;
      expect(path).toMatch(/^(\/([\w-]+|\{\w+\})(:\w+)?)+$/);
      const place = ["paths", path, method];
      for (const type of contentOf(requestBody)) schemaAt(...place, "requestBody", "content", type, "schema");
      for (const [status, reply] of Object.entries(responses)) {
        for (const type of contentOf(reply)) schemaAt(...place, "responses", status, "content", type, "schema");
      }
      // Without a token, a route that needs one says so before it looks anything up, and one that does not exist is a 404.
      const url = `${server.url}${path.replace(/\{\w+\}/g, "x")}`;
      const { status } = await fetch(url, { method: method.toUpperCase() });
      const needsToken = security === undefined || security.length > 0;
      if (needsToken) expect(status, `${method} ${path}`).toBe(401);
      else expect([404, 405], `${method} ${path}`).not.toContain(status);
    }
  }
  expect(operations).toBeGreaterThan(70);
  for (const name of Object.keys(document.components.schemas)) schemaAt("components", "schemas", name);

  const chat = ["paths", "/v1/chat/completions", "post"];
  const request = schemaAt(...chat, "requestBody", "content", "application/json", "schema");
  expect(request({ messages: says("x"), seed: 5, stop: ["a"] })).toBe(true);
  expect(request({ messages: "x" })).toBe(false);
  const reply = schemaAt(...chat, "responses", "200", "content", "application/json", "schema");
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

const contentOf = (body: Body | undefined) =>
  Object.entries(body?.content ?? {}).flatMap(([type, { schema }]) => (schema === undefined ? [] : [type]));

it("is valid for a public validator, and small", async () => {
  const text = readFileSync(file, "utf8");
  const validator = new Validator();
  expect(await validator.validate(JSON.parse(text))).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
  expect(text.length).toBeLessThan(500_000);
});

it("gives every operation a tag, and an id that no other has", () => {
  const { paths } = JSON.parse(readFileSync(file, "utf8")) as { paths: Record<string, Record<string, Named>> };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const ids = operations.map(({ operationId }) => operationId);
  for (const id of ids) expect(id).toMatch(/^(get|post|put|delete)[A-Z][A-Za-z0-9_]+$/);
  expect(new Set(ids).size).toBe(operations.length);
  expect(paths["/v1/models/{id}"]!.get!.operationId).toBe("getV1ModelsById");
  const tags = operations.map(({ tags }) => tags.join());
  expect([...new Set(tags)].sort()).toEqual(["access", "inference", "models", "operations", "tools", "training"]);
});

interface Named {
  operationId: string;
  tags: string[];
}

it("refers to schemas and errors that are there, and has no other", () => {
  const text = readFileSync(file, "utf8");
  const { components } = JSON.parse(text);
  const named = new Set([...text.matchAll(/"#\/components\/(\w+\/\w+)"/g)].map(([, name]) => name));
  const there = ["schemas", "responses"].flatMap((kind) =>
    Object.keys(components[kind]).map((name) => `${kind}/${name}`),
  );
  expect([...named].sort()).toEqual(there.sort());
});

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
