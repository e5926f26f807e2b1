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

it("describes every route, its schemas compile, and a real reply fits", async () => {
  const document = JSON.parse(readFileSync(file, "utf8"));
  expect(document.openapi).toBe("3.1.0");
  expect(Object.keys(document.paths)).toEqual(
    expect.arrayContaining([
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/models",
      "/tokenize",
      "/detokenize",
      "/health",
    ]),
  );
  const ajv = new Ajv2020({ strict: false, formats: { int64: true } });
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
