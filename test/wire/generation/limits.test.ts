import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TemplateSandbox } from "../../../src/text/template/sandbox.ts";
import { TextModel } from "../../../src/text/text-model.ts";
import { ByteTokenizer } from "../../support/byte-tokenizer.ts";
import {
  API_KEY,
  says,
  startTestServer,
  TEMPLATE,
  type TestServer,
  type TestServerOptions,
} from "../../support/test-server.ts";

let server: TestServer;
const start = async (options: TestServerOptions = {}) => {
  server = await startTestServer(options);
  return server;
};
afterEach(() => server.close());

const body = { messages: says("fine") };
const works = async () => expect((await server.chat(body)).choices[0].message.content).toBe("fine");

describe("bodies", () => {
  it("refuses other content types with 400", async () => {
    await start();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]) {
      const response = await server.post("/v1/chat/completions", body, { "content-type": type });
      expect(response.status, type).toBe(400);
      expect((await response.json()).error).toMatchObject({ type: "Bad Request", param: null });
    }
    for (const type of ["application/json; charset=utf-8", "Application/JSON"]) {
      expect((await server.post("/v1/chat/completions", body, { "content-type": type })).status).toBe(200);
    }
    const packed = await server.post("/v1/chat/completions", body, { "content-encoding": "gzip" });
    expect(packed.status).toBe(400);
    expect((await packed.json()).error.message).toEqual(expect.stringContaining("gzip"));
    expect((await server.post("/v1/chat/completions", body, { "content-encoding": "identity" })).status).toBe(200);
  });

  it("answers 413 to bodies over the limit, with or without a declared length, and keeps serving", async () => {
    await start({ config: { maxBodyBytes: 100_000 } });
    const large = "x".repeat(50_000_000);
    const announced = await server.post("/v1/chat/completions", large);
    expect(announced.status).toBe(413);
    expect((await announced.json()).error).toMatchObject({ type: "RequestTooLargeError", code: 413 });
    const pieces = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 50; i++) controller.enqueue(new TextEncoder().encode("x".repeat(10_000)));
        controller.close();
      },
    });
    const chunked = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: pieces,
      duplex: "half",
    } as RequestInit);
    expect(chunked.status).toBe(413);
    await works();
  });

  it("answers 413 to clients that read only after they have sent everything", async () => {
    await start({ config: { maxBodyBytes: 100_000 } });
    const size = 8_000_000;
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      let text = "";
      socket.pause();
      socket.on("error", reject);
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${API_KEY}\r\n` +
          `content-type: application/json\r\ncontent-length: ${size}\r\n\r\n`,
      );
      const piece = "x".repeat(size / 100);
      const send = (left: number) => (left === 0 ? socket.resume() : socket.write(piece, () => send(left - 1)));
      send(100);
      socket.on("data", (bytes) => {
        text += bytes;
        socket.end();
      });
      socket.on("close", () => resolve(text));
    });
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    await works();
  });

  it("survives deep nesting wherever it is hidden", async () => {
    await start();
    const deep = (open: string, close: string, n: number) => open.repeat(n) + close.repeat(n);
    const hostile = [
      `{"messages":${deep("[", "]", 10_000)}}`,
      `{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":${deep('{"a":', "}", 10_000).replace("}", "1}")}}`,
      JSON.stringify({ ...body, structured_outputs: { json: deep("[", "]", 10_000) } }),
      JSON.stringify({ ...body, structured_outputs: { regex: "(".repeat(10_000) } }),
      JSON.stringify({
        messages: [
          {
            role: "assistant",
            content: "",
            tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: deep("[", "]", 100_000) } }],
          },
        ],
      }),
      JSON.stringify({ ...body, chat_template: "{% if a %}".repeat(10_000) }),
      JSON.stringify({
        ...body,
        chat_template: "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
      }),
    ];
    for (const text of hostile) {
      const response = await server.post("/v1/chat/completions", text);
      expect([200, 400], text.slice(0, 80)).toContain(response.status);
      expect(await response.text()).not.toMatch(/node_modules|\.ts:\d/);
    }
    await works();
  });

  it("refuses more messages than the context has tokens without reading them", async () => {
    await start();
    const response = await server.post("/v1/chat/completions", { messages: new Array(2049).fill(0) });
    expect(response.status).toBe(400);
    expect((await response.json()).error).toMatchObject({
      param: "messages",
      message: expect.stringMatching(/maximum context length is 2048 tokens.* 2049 messages/),
    });
    await works();
  });

  it("answers bytes that are not HTTP in the envelope", async () => {
    await start();
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.end("NONSENSE\r\n\r\n"));
      let text = "";
      socket.on("data", (bytes) => {
        text += bytes;
      });
      socket.on("close", () => resolve(text));
    });
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!).error.code).toBe(400);
    const headers = await server.get("/health", { "x-large": "y".repeat(20_000) });
    expect(headers.status).toBe(431);
  });
});

describe("queue", () => {
  it("answers 429 with retry-after when full, and recovers", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    await start({ config: { maxNumSeqs: 1, maxQueue: 1 }, runner: { before: () => gate } });
    const running = [server.chat(body), server.chat(body)];
    await expect.poll(() => server.service.admission.active).toBe(2);
    for (const stream of [false, true]) {
      const refused = await server.post("/v1/chat/completions", { ...body, stream });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect((await refused.json()).error).toMatchObject({ type: "RateLimitError", code: 429 });
    }
    const many = await server.post("/v1/chat/completions", { ...body, n: 3 });
    expect(many.status).toBe(400);
    open();
    await Promise.all(running);
    await works();
  });

  it("refuses priorities under fcfs and orders by them otherwise", async () => {
    await start({ config: { schedulingPolicy: "fcfs" } });
    const refused = await server.post("/v1/chat/completions", { ...body, priority: 1 });
    expect(refused.status).toBe(400);
    expect((await refused.json()).error).toMatchObject({ type: "BadRequestError", param: "priority" });
    expect((await server.post("/v1/chat/completions", { ...body, priority: 0 })).status).toBe(200);
    await server.close();

    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let steps = 0;
    const before = () => {
      steps++;
      return gate;
    };
    await start({ config: { maxNumSeqs: 1 }, runner: { before } });
    const generate = vi.spyOn(server.service.engine, "generate");
    const order: string[] = [];
    const send = (name: string, priority: number) =>
      server.chat({ ...body, priority }).then(() => {
        order.push(name);
      });
    const first = send("first", 0);
    await expect.poll(() => steps).toBe(1);
    const late = send("late", 5);
    const urgent = send("urgent", -5);
    await expect.poll(() => generate.mock.calls.length).toBe(3);
    open();
    await Promise.all([first, late, urgent]);
    expect(order).toEqual(["first", "urgent", "late"]);
  });
});

it("answers 400 to a text with a token that the tokenizer knows and the model does not", async () => {
  await start({ runner: { vocabSize: 200 } });
  for (const [path, extra] of [
    ["/v1/chat/completions", { messages: [{ role: "user", content: "\u{10ffff}" }] }],
    ["/v1/completions", { prompt: "\u{10ffff}" }],
  ] as const) {
    const refused = await server.post(path, { ...extra, max_tokens: 1 });
    expect(refused.status, path).toBe(400);
    expect((await refused.json()).error.message).toMatch(/out of vocabulary: this model has 200 tokens/);
  }
});

it("refuses a reply that would be too large before it is computed, but streams it", async () => {
  await start({ config: { maxLogprobs: -1 } });
  const large = { ...body, n: 8, logprobs: true, top_logprobs: -1, max_tokens: 1500 };
  const refused = await server.post("/v1/chat/completions", large);
  expect(refused.status).toBe(400);
  expect((await refused.json()).error).toMatchObject({ param: "top_logprobs", message: /log probabilities.*stream/ });
  expect(server.runner.forwards).toBe(0);
  const completion = { prompt: "say", n: 8, logprobs: 200, max_tokens: 1500 };
  expect((await server.post("/v1/completions", completion)).status).toBe(400);
  const gone = new AbortController();
  const stream = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ ...large, stream: true }),
    signal: gone.signal,
  });
  expect(stream.status).toBe(200);
  gone.abort();
});

it("does not render tools and documents that are longer than the context can be", async () => {
  const template = `{{ documents }}${TEMPLATE}`;
  await start({ templates: new Map([["default", template]]) });
  const text = "x".repeat(20_000);
  const tools = [{ type: "function", function: { name: "f", description: text } }];
  for (const [param, extra] of [
    ["tools", { tools }],
    ["documents", { documents: [{ text }] }],
  ] as const) {
    const refused = await server.post("/v1/chat/completions", { ...body, ...extra });
    expect(refused.status, param).toBe(400);
    expect((await refused.json()).error).toMatchObject({
      param,
      message: expect.stringContaining("maximum context length"),
    });
    const cut = { ...body, ...extra, truncate_prompt_tokens: 100 };
    expect((await server.post("/v1/chat/completions", cut)).status, `${param}, cut`).toBe(200);
    const unused = { ...body, ...extra, chat_template: "{{ messages[0].content }}" };
    expect((await server.post("/v1/chat/completions", unused)).status, `${param}, unused`).toBe(200);
  }
});

it("accepts more messages than the context has tokens if they are truncated", async () => {
  await start();
  const many = { messages: Array.from({ length: 3000 }, () => ({ role: "user", content: "x" })), max_tokens: 1 };
  expect((await server.post("/v1/chat/completions", many)).status).toBe(400);
  expect((await server.post("/v1/chat/completions", { ...many, truncate_prompt_tokens: 100 })).status).toBe(200);
});

describe("chat templates of requests", () => {
  it("are refused when the operator does not trust them", async () => {
    await start({ config: { trustRequestChatTemplate: false } });
    for (const extra of [{ chat_template: "x" }, { chat_template_kwargs: { chat_template: "x" } }]) {
      for (const path of ["/v1/chat/completions", "/tokenize"]) {
        const refused = await server.post(path, { ...body, ...extra });
        expect(refused.status, path).toBe(400);
        expect((await refused.json()).error.message).toMatch(/trust-request-chat-template/);
      }
    }
    await works();
  });

  it("get 429 with retry-after while too many of them wait", async () => {
    const sandbox = new TemplateSandbox({ maxWaiting: 0 });
    const text = new TextModel({
      tokenizer: new ByteTokenizer(),
      specialTokens: {},
      chatTemplates: new Map([["default", TEMPLATE]]),
      longestToken: 5,
      sandbox,
    });
    await start({ model: { text } });
    for (const path of ["/v1/chat/completions", "/tokenize"]) {
      const refused = await server.post(path, { ...body, chat_template: "{{ messages[0].content }}" });
      expect(refused.status).toBe(429);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect((await refused.json()).error).toMatchObject({ type: "RateLimitError", param: "chat_template" });
    }
    await works();
  });

  it("are needed when the model has none", async () => {
    await start({ templates: new Map() });
    const refused = await server.post("/v1/chat/completions", body);
    expect(refused.status).toBe(400);
    expect((await refused.json()).error).toMatchObject({ type: "BadRequestError", param: null });
    const template = "{% for m in messages %}{{ m.content }}\n[assistant]{% endfor %}";
    const reply = await server.chat({ ...body, chat_template: template });
    expect(reply.choices[0].message.content).toBe("fine");
  });
});
