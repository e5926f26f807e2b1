// What the tests of /v1/responses share: a server for each file, and how to ask it.
import { expect, vi } from "vitest";
import { toolCallFormat } from "../../../src/text/tools/tool-format.ts";
import { shared } from "../../support/shared-server.ts";
import { PROJECT_STORE, storesOf } from "../../support/stores.ts";
import { API_KEY, type Loose, startTestServer, TEMPLATE, type TestServer } from "../../support/test-server.ts";

const reasoning = { start: "<think>", end: "</think>", assumed: false };
/** Shows reasoning, calls and results, so that a reply can tell what the prompt was. */
const template = TEMPLATE.replace(
  "{{ m.content }}",
  "{% if m.reasoning %}({{ m.reasoning }}){% endif %}" +
    "{% for c in m.tool_calls %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}{{ m.content }}",
);
const stores = storesOf(PROJECT_STORE);
/** Files share modules, so each asks for a server of its own. It ends with the file. */
export const responsesServer = (): TestServer =>
  shared(async () => {
    const database = await stores.database("responses");
    const keys = [API_KEY, "other-key"];
    return startTestServer({
      config: { database, enableAutoToolChoice: true, toolCallParser: "hermes", apiKey: keys },
      model: { toolFormat: toolCallFormat("hermes"), reasoning },
      templates: new Map([["default", template]]),
    });
  });

const create = async (body: Record<string, unknown>, on: TestServer): Promise<Loose> => {
  const response = await on.post("/v1/responses", body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text);
};
const refuse = async (body: unknown, on: TestServer): Promise<Loose> => {
  const response = await on.post("/v1/responses", body);
  const text = await response.text();
  expect(response.status, text).toBeGreaterThanOrEqual(400);
  return { status: response.status, ...JSON.parse(text).error };
};
const events = async (body: Record<string, unknown>, on: TestServer): Promise<Loose[]> => {
  const response = await on.post("/v1/responses", { ...body, stream: true });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  return (await response.text())
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const [name, data] = block.split("\n");
      const event = JSON.parse(data!.replace(/^data: /, ""));
      expect(name).toBe(`event: ${event.type}`);
      return event;
    });
};
/** The prompt of a request, as the server tokenised it. */
const promptOf = async (body: Record<string, unknown>, server: TestServer): Promise<string> => {
  const { engine } = server.service;
  const generate = vi.spyOn(engine, "generate");
  try {
    await create(body, server);
    return server.service.text.tokenizer.decode([...generate.mock.lastCall![0].promptTokenIds]);
  } finally {
    generate.mockRestore();
  }
};

/** How to ask one server. */
export const asking = (server: TestServer) => ({
  create: (body: Record<string, unknown>, on = server) => create(body, on),
  refuse: (body: unknown, on = server) => refuse(body, on),
  events: (body: Record<string, unknown>, on = server) => events(body, on),
  promptOf: (body: Record<string, unknown>) => promptOf(body, server),
});

export const add = {
  type: "function",
  name: "add",
  parameters: { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false },
};
export const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';
