// The page of the API: what it shows of a document, and its look.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { referencePage } from "./reference-page.ts";

const page = referencePage({
  info: { title: "T", version: "1", description: "D." },
  paths: {
    "/v1/a/{id}": {
      post: {
        summary: "Does <this>",
        security: [],
        requestBody: {
          content: {
            "application/json": {
              schema: {
                properties: {
                  n: { type: "integer", default: 1, description: "How many." },
                  of: { enum: ["x", "y"] },
                  messages: {
                    type: "array",
                    items: { anyOf: [{ properties: { role: { enum: ["user"] } } }, { properties: { role: {} } }] },
                  },
                },
                required: ["of"],
              },
            },
          },
        },
        responses: { 200: { content: { "application/json": { schema: { $ref: "#/components/schemas/Answer" } } } } },
      },
    },
  },
  components: { schemas: { Answer: { properties: {} } }, responses: {} },
});

it("has a section for every route, a list that leads there, and the text as text", () => {
  expect(page).toContain('<a href="#post /v1/a/{id}">POST /v1/a/{id}</a>');
  expect(page).toContain('<section id="post /v1/a/{id}"><h2><code class="method">POST</code> /v1/a/{id}</h2>');
  expect(page).toContain("Does &lt;this&gt;. No token needed.");
  expect(page).toContain("<td>How many. Default: <code>1</code>.</td>");
  expect(page).toContain('<code>of</code> <span class="must">required</span>');
  expect(page).toContain('<a href="#Answer">Answer</a>');
  expect(page).toMatch(/<summary>role user<\/summary>.*<summary>any other role<\/summary>/s);
  expect(page).toMatch(/<a class="skip" href="#routes">.*<nav aria-label="Routes".*<main id="routes"/s);
});

it("has the colours of the web page", () => {
  const style = readFileSync(new URL("../../../web/styles/style.css", import.meta.url), "utf8").replaceAll(" ", "");
  const colours = [...page.matchAll(/(--[\w-]+:light-dark\([^)]*\))/g)].map(([, colour]) => colour!);
  expect(colours.length).toBe(8);
  expect(colours.filter((colour) => !style.includes(`${colour};`))).toEqual([]);
});
