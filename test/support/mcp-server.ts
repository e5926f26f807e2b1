// An MCP server over HTTP, written by hand from the specification (Streamable HTTP, 2025-06-18), with tools that behave and tools that
// do not.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Send = (answer: object, headers?: Record<string, string>) => void;

interface Message {
  id?: number | string;
  method: string;
  params?: { name?: string; arguments?: Record<string, unknown>; cursor?: string; protocolVersion?: string };
}

const schema = (...names: string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});

/** In two pages. */
const TOOLS = [
  [
    { name: "repeat", description: "Says it again. With care.", inputSchema: schema("text") },
    { name: "look.up", description: "Fails, and says so.", inputSchema: schema() },
  ],
  [
    { name: "picture", description: "", inputSchema: schema() },
    { name: "slow", inputSchema: schema() },
    { name: "flood", inputSchema: schema() },
    { name: "flooding_stream", inputSchema: schema() },
  ],
];

export class FakeMcpServer {
  readonly #http: Server;
  readonly calls: { name: string; arguments: unknown }[] = [];
  /** Session ids, begun and not ended. */
  readonly sessions = new Set<string>();
  begun = 0;
  /** Where /moved leads. */
  movedTo = "";

  private constructor(http: Server) {
    this.#http = http;
  }

  static async start(): Promise<FakeMcpServer> {
    const http = createServer((request, response) => {
      void server.#answer(request, response);
    });
    const server = new FakeMcpServer(http);
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/mcp`;
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === "/moved") return void response.writeHead(307, { location: this.movedTo }).end();
    const session = request.headers["mcp-session-id"];
    if (request.method === "DELETE") {
      this.sessions.delete(String(session));
      return void response.writeHead(204).end();
    }
    if (request.method !== "POST") return void response.writeHead(405).end();
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const message = JSON.parse(body) as Message;
    if (message.id === undefined) return void response.writeHead(202).end();
    const send: Send = (answer, headers = {}) => {
      response.writeHead(200, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer }));
    };
    switch (message.method) {
      case "initialize": {
        const id = `session-${++this.begun}`;
        this.sessions.add(id);
        const result = {
          ...{ protocolVersion: message.params!.protocolVersion, capabilities: { tools: {} } },
          serverInfo: { name: "fake", version: "1" },
        };
        send({ result }, { "mcp-session-id": id });
        break;
      }
      case "tools/list": {
        const page = message.params?.cursor === "2" ? 1 : 0;
        send({ result: { tools: TOOLS[page], ...(page === 0 ? { nextCursor: "2" } : {}) } });
        break;
      }
      case "tools/call":
        this.#call(message, response, send);
        break;
      default:
        send({ error: { code: -32601, message: "Method not found" } });
    }
  }

  #call({ params }: Message, response: ServerResponse, send: Send): void {
    const { name, arguments: args } = params as { name: string; arguments: Record<string, unknown> };
    this.calls.push({ name, arguments: args });
    const text = (said: string, more: object = {}) =>
      send({ result: { content: [{ type: "text", text: said }], ...more } });
    switch (name) {
      case "repeat":
        text(String(args.text));
        break;
      case "look.up":
        text("nothing there", { isError: true });
        break;
      case "picture": {
        const parts = [
          { type: "text", text: "a sea" },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "resource_link", uri: "file:///sea.txt", name: "sea" },
        ];
        send({ result: { content: parts } });
        break;
      }
      case "slow":
        break; // it never answers
      case "flood":
        text("x".repeat(2 ** 20));
        break;
      case "flooding_stream":
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (let i = 0; i < 1100; i++) response.write(`: ${"x".repeat(1000)}\n\n`);
        break; // it never ends
      default:
        send({ error: { code: -32602, message: `Unknown tool: ${name}` } });
    }
  }
}
