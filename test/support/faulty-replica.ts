// A replica with one fault: a proxy in front of a healthy one that changes requests, replies, or answers by itself.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Loose } from "./test-server.ts";

export interface Fault {
  /** Changes a request before it is passed on, or answers it: `{ status, json }`. */
  request?: (path: string, body: Loose) => { status: number; json: unknown } | undefined;
  /** Changes the JSON of a reply in place. `body` is the request's. */
  reply?: (path: string, json: Loose, body: Loose) => void;
  /** Changes the text of a reply that is not JSON. */
  text?: (path: string, text: string) => string;
}

export interface FaultyReplica {
  url: string;
  close(): Promise<void>;
}

export async function startFaulty(healthyUrl: string, fault: Fault): Promise<FaultyReplica> {
  const server = createServer((request, response) => {
    pass(request).then(
      ({ status, type, text }) => response.writeHead(status, { "content-type": type }).end(text),
      (error) => response.writeHead(502).end(String(error)),
    );
  });
  const pass = async (request: IncomingMessage): Promise<{ status: number; type: string; text: string }> => {
    const path = request.url!;
    const sent = await textOf(request);
    const body = sent === "" ? null : JSON.parse(sent);
    const own = fault.request?.(path, body);
    if (own !== undefined) return { status: own.status, type: "application/json", text: JSON.stringify(own.json) };
    const { authorization = "" } = request.headers;
    const reply = await fetch(healthyUrl + path, {
      method: request.method!,
      headers: { authorization, "content-type": "application/json" },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
    });
    const type = reply.headers.get("content-type") ?? "text/plain";
    const text = await reply.text();
    if (!type.includes("json")) return { status: reply.status, type, text: fault.text?.(path, text) ?? text };
    const json = JSON.parse(text);
    fault.reply?.(path, json, body);
    return { status: reply.status, type, text: JSON.stringify(json) };
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  return { url: `http://127.0.0.1:${port}`, close };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const bytes of request) text += bytes;
  return text;
}
