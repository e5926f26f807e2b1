// A small Hugging Face hub on the loopback interface: model info, file tree, and files behind a redirect to a second
// origin, as the real one serves large files. Tests script its faults and read the requests it got.

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeHub {
  endpoint: string;
  /** The commit of "main": 40 hexadecimal digits. */
  commit: string;
  /** The repository's files. */
  files: Map<string, Buffer>;
  /** Every request so far: "GET /path [range] [authorization]" at either origin. */
  requests: { origin: "hub" | "cdn"; path: string; range?: string; authorization?: string }[];
  faults: Faults;
  close(): Promise<void>;
}

export interface Faults {
  /** Answer every API call with this status. */
  apiStatus?: number;
  /** Answer every file with this status. */
  fileStatus?: number;
  /** Break the connection after this many bytes of a file, this many times. */
  cut?: { after: number; times: number };
  /** Change the bytes sent for a file. */
  damage?: (name: string, body: Buffer) => Buffer;
  /** Send whole files whatever range was asked for. */
  ignoreRanges?: boolean;
}

export async function startFakeHub(repository: string, files: Record<string, Buffer | string>): Promise<FakeHub> {
  const cdn = await listen((request, response) =>
    serveFile(hub, decodeURIComponent(request.url!.slice(1)), request, response),
  );
  const front = await listen((request, response) => {
    const { pathname } = new URL(request.url!, "http://hub");
    const prefix = `/${repository}/resolve/${hub.commit}/`;
    note(hub, "hub", request);
    if (pathname.startsWith("/api/")) answerApi(hub, repository, pathname, response);
    else if (!pathname.startsWith(prefix)) response.writeHead(404).end();
    else if (hub.faults.fileStatus !== undefined) response.writeHead(hub.faults.fileStatus).end();
    else response.writeHead(302, { location: `${addressOf(cdn)}/${pathname.slice(prefix.length)}` }).end();
  });
  const hub: FakeHub = {
    endpoint: addressOf(front),
    commit: "c0ffee".padEnd(40, "0"),
    files: new Map(Object.entries(files).map(([name, body]) => [name, Buffer.from(body)])),
    requests: [],
    faults: {},
    close: async () => {
      for (const server of [front, cdn]) {
        server.closeAllConnections();
        await new Promise((done) => server.close(done));
      }
    },
  };
  return hub;
}

/** Git's id of a file. */
export function gitId(body: Buffer): string {
  return createHash("sha1").update(`blob ${body.length}\0`).update(body).digest("hex");
}

function answerApi(hub: FakeHub, repository: string, pathname: string, response: ServerResponse): void {
  const { status, body } = apiAnswer(hub, repository, pathname);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function apiAnswer(hub: FakeHub, repository: string, pathname: string): { status: number; body: unknown } {
  const base = `/api/models/${repository}`;
  if (hub.faults.apiStatus !== undefined) return { status: hub.faults.apiStatus, body: { error: "no" } };
  if (pathname === `${base}/revision/main` || pathname === `${base}/revision/${hub.commit}`) {
    const info = { _id: "1", id: repository, sha: hub.commit, private: false, gated: false, lastModified: new Date() };
    return { status: 200, body: info };
  }
  if (pathname !== `${base}/tree/${hub.commit}`) return { status: 404, body: { error: "not found" } };
  const entries = [...hub.files].map(([path, body]) => {
    const oid = createHash("sha256").update(body).digest("hex");
    const lfs = path.endsWith(".safetensors") ? { oid, size: body.length, pointerSize: 130 } : undefined;
    return { type: "file", path, size: body.length, oid: gitId(body), lfs };
  });
  const folder = { type: "directory", path: "original", size: 0, oid: "0".repeat(40) };
  return { status: 200, body: [folder, ...entries] };
}

function serveFile(hub: FakeHub, name: string, request: IncomingMessage, response: ServerResponse): void {
  note(hub, "cdn", request);
  const original = hub.files.get(name);
  if (original === undefined) {
    response.writeHead(404).end();
    return;
  }
  const body = hub.faults.damage?.(name, original) ?? original;
  const start = hub.faults.ignoreRanges ? 0 : Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const rest = body.subarray(start);
  const range = start > 0 ? { "content-range": `bytes ${start}-${body.length - 1}/${body.length}` } : {};
  response.writeHead(start > 0 ? 206 : 200, { "content-length": rest.length, ...range });
  const { cut } = hub.faults;
  if (cut !== undefined && cut.times > 0 && rest.length > cut.after) {
    cut.times--;
    response.write(rest.subarray(0, cut.after), () => setTimeout(() => response.destroy(), 20));
  } else response.end(rest);
}

function note(hub: FakeHub, origin: "hub" | "cdn", { url, headers }: IncomingMessage): void {
  const { range, authorization } = headers;
  hub.requests.push({ origin, path: url!, ...(range && { range }), ...(authorization && { authorization }) });
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listen(handler: RequestListener): Promise<Server> {
  const server = createServer(handler);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}
