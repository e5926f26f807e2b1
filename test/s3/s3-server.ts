// A small S3 server over real HTTP: the operations that storage uses, with their conditions, pages and errors. It checks
// the signature of every request. Tests make it fail in ways that real ones do.

import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { checkSignature, SignatureError } from "./s3-signature.ts";

export interface StoredObject {
  body: Buffer;
  modified: number;
  metadata: Record<string, string>;
}

interface StoredUpload {
  key: string;
  started: number;
  metadata: Record<string, string>;
  parts: Map<number, Buffer>;
}

export type FaultKind =
  /** 503, as S3 answers to too many requests. */
  | "slow down"
  /** Half of the body, then the connection ends. */
  | "cut body"
  | "access denied"
  /** The request takes effect, but the connection ends before the answer. */
  | "lost answer"
  /** The connection ends at once. */
  | "hang up"
  /** No answer until `release`. */
  | "hold";

export interface Fault {
  kind: FaultKind;
  method?: string;
  /** Compared with the key, and "?" with the query. */
  match?: RegExp;
  /** How often; by default always. */
  times?: number;
}

export interface Recorded {
  method: string;
  key: string;
  query: URLSearchParams;
  status: number;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: Record<string, string>;

  constructor(status: number, code: string, message: string, fields: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

const CREDENTIALS = { accessKeyId: "AKIDTEST", secretAccessKey: "secret-of-the-test" };
const REGION = "eu-test-1";

export class S3Server {
  readonly bucket = "test-bucket";
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, StoredUpload>();
  readonly requests: Recorded[] = [];
  /** Keys per page of a list. */
  pageSize = 3;
  /** Whether writes look at If-None-Match. */
  isConditional = true;
  #faults: Fault[] = [];
  #held: (() => void)[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<S3Server> {
    const server = createServer();
    const made = new S3Server(server);
    server.on("request", (request, response) => void made.#answer(request, response));
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What the SDK of a client needs in its environment. */
  get env(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL_S3: this.url,
      AWS_REGION: REGION,
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    };
  }

  fail(fault: Fault): void {
    this.#faults.push({ ...fault });
  }

  /** Everything works again; what was held is answered. */
  release(): void {
    this.#faults = [];
    for (const go of this.#held.splice(0)) go();
  }

  get held(): number {
    return this.#held.length;
  }

  keys(prefix = ""): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
  }

  /** Everything was written so much earlier. */
  age(ms: number): void {
    for (const object of this.objects.values()) object.modified -= ms;
    for (const upload of this.uploads.values()) upload.started -= ms;
  }

  async close(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.url);
    const [, bucket = "", ...names] = url.pathname.split("/");
    const key = names.map(decodeURIComponent).join("/");
    const method = request.method!;
    const record: Recorded = { method, key, query: url.searchParams, status: 0 };
    this.requests.push(record);
    const reply = (status: number, headers: Record<string, string | number> = {}, body: Buffer | string = "") => {
      record.status = status;
      response.writeHead(status, { "x-amz-request-id": randomUUID(), ...headers });
      response.end(method === "HEAD" ? undefined : body);
    };
    try {
      const body = await bodyOf(request);
      const kind = this.#faultOf(method, key, url.search);
      if (kind === "hang up") return void request.socket.destroy();
      if (kind === "hold") await new Promise<void>((go) => this.#held.push(go));
      if (kind === "slow down") throw new Refusal(503, "SlowDown", "Please reduce your request rate.");
      if (kind === "access denied") throw new Refusal(403, "AccessDenied", "Access Denied");
      checkSignature(request, url, body, CREDENTIALS, REGION);
      if (bucket !== this.bucket) throw new Refusal(404, "NoSuchBucket", "The specified bucket does not exist");
      const done = this.#perform(request, url.searchParams, key, body);
      if (kind === "lost answer") return void request.socket.destroy();
      if (kind === "cut body") {
        response.writeHead(200, { ...done.headers, "content-length": done.body!.length });
        response.write((done.body as Buffer).subarray(0, done.body!.length / 2), () => request.socket.destroy());
        return;
      }
      reply(done.status ?? 200, done.headers, done.body);
    } catch (error) {
      if (error instanceof SignatureError) {
        error.region
          ? reply(400, {}, errorXml("AuthorizationHeaderMalformed", error.message, { Region: REGION }))
          : reply(403, {}, errorXml(error.code, error.message));
      } else if (error instanceof Refusal) reply(error.status, {}, errorXml(error.code, error.message, error.fields));
      else if (!request.destroyed) reply(500, {}, errorXml("InternalError", String(error)));
    }
  }

  #faultOf(method: string, key: string, query: string): FaultKind | null {
    const fault = this.#faults.find(
      ({ method: only, match, times = 1 }) =>
        (only ?? method) === method && (match?.test(key + query) ?? true) && times > 0,
    );
    if (fault?.times !== undefined) fault.times--;
    return fault?.kind ?? null;
  }

  #perform(
    request: IncomingMessage,
    query: URLSearchParams,
    key: string,
    body: Buffer,
  ): { status?: number; headers?: Record<string, string>; body?: Buffer | string } {
    const method = request.method!;
    if (key === "" && query.get("list-type") === "2") return { body: this.#list(query) };
    if (key === "" && query.has("uploads")) return { body: this.#listUploads(query) };
    const uploadId = query.get("uploadId");
    const upload = uploadId === null ? null : this.uploads.get(uploadId);
    if (upload === undefined) throw new Refusal(404, "NoSuchUpload", "The specified upload does not exist.");
    if (method === "POST" && query.has("uploads")) {
      const id = randomUUID();
      this.uploads.set(id, { key, started: Date.now(), metadata: metadataOf(request), parts: new Map() });
      return { body: xml("InitiateMultipartUploadResult", `<UploadId>${id}</UploadId>`) };
    }
    if (upload && method === "PUT") {
      upload.parts.set(Number(query.get("partNumber")), body);
      return { headers: { etag: etag(body) } };
    }
    if (upload && method === "POST") return this.#complete(request, key, uploadId!, upload, body.toString());
    if (upload && method === "DELETE") {
      this.uploads.delete(uploadId!);
      return { status: 204 };
    }
    if (method === "PUT") {
      this.#store(request, key, { body, modified: Date.now(), metadata: metadataOf(request) });
      return { headers: { etag: etag(body) } };
    }
    if (method === "DELETE") {
      this.objects.delete(key);
      return { status: 204 };
    }
    const found = this.objects.get(key);
    if (!found) throw new Refusal(404, "NoSuchKey", "The specified key does not exist.");
    const metadata = Object.entries(found.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]);
    const headers = { ...Object.fromEntries(metadata), etag: etag(found.body), "content-length": found.body.length };
    return { headers, body: found.body };
  }

  #store(request: IncomingMessage, key: string, object: StoredObject): void {
    const exists = this.isConditional && request.headers["if-none-match"] === "*" && this.objects.has(key);
    if (exists)
      throw new Refusal(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
    this.objects.set(key, object);
  }

  #complete(request: IncomingMessage, key: string, id: string, upload: StoredUpload, wanted: string) {
    const parts = [...wanted.matchAll(/<Part>.*?<\/Part>/gs)].map(([text]) => {
      const number = Number(/<PartNumber>(\d+)</.exec(text)?.[1]);
      const part = upload.parts.get(number);
      if (!part || !text.includes(etag(part).replaceAll('"', ""))) {
        throw new Refusal(400, "InvalidPart", `part ${number} is missing or another one`);
      }
      return part;
    });
    this.#store(request, key, { body: Buffer.concat(parts), modified: Date.now(), metadata: upload.metadata });
    this.uploads.delete(id);
    return { body: xml("CompleteMultipartUploadResult", `<Key>${escaped(key)}</Key>`) };
  }

  #list(query: URLSearchParams): string {
    const after = query.get("continuation-token") ?? "";
    const all = this.keys(query.get("prefix") ?? "").filter((key) => key > after);
    const page = all.slice(0, this.pageSize);
    const more = all.length > page.length;
    const items = page.map((key) => {
      const { body, modified } = this.objects.get(key)!;
      const facts = `<LastModified>${new Date(modified).toISOString()}</LastModified><Size>${body.length}</Size>`;
      return `<Contents><Key>${escaped(key)}</Key>${facts}</Contents>`;
    });
    const next = more ? `<NextContinuationToken>${escaped(page.at(-1)!)}</NextContinuationToken>` : "";
    return xml("ListBucketResult", `<IsTruncated>${more}</IsTruncated>${next}${items.join("")}`);
  }

  #listUploads(query: URLSearchParams): string {
    const prefix = query.get("prefix") ?? "";
    const marker = `${query.get("key-marker") ?? ""} ${query.get("upload-id-marker") ?? ""}`;
    const all = [...this.uploads]
      .map(([id, { key, started }]) => ({ id, key, started, place: `${key} ${id}` }))
      .filter(({ key, place }) => key.startsWith(prefix) && place > marker)
      .sort((a, b) => (a.place < b.place ? -1 : 1));
    const page = all.slice(0, this.pageSize);
    const items = page.map(({ id, key, started }) => {
      const time = `<Initiated>${new Date(started).toISOString()}</Initiated>`;
      return `<Upload><Key>${escaped(key)}</Key><UploadId>${id}</UploadId>${time}</Upload>`;
    });
    const last = page.at(-1);
    const more = all.length > page.length;
    const next = more
      ? `<NextKeyMarker>${escaped(last!.key)}</NextKeyMarker><NextUploadIdMarker>${last!.id}</NextUploadIdMarker>`
      : "";
    return xml("ListMultipartUploadsResult", `<IsTruncated>${more}</IsTruncated>${next}${items.join("")}`);
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function metadataOf({ headers }: IncomingMessage): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"));
  return Object.fromEntries(own.map(([name, value]) => [name.slice("x-amz-meta-".length), String(value)]));
}

function etag(body: Buffer): string {
  return `"${createHash("md5").update(body).digest("hex")}"`;
}

function xml(name: string, content: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</${name}>`;
}

function errorXml(code: string, message: string, fields: Record<string, string> = {}): string {
  const rest = Object.entries(fields).map(([name, value]) => `<${name}>${escaped(value)}</${name}>`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${escaped(message)}</Message>${rest.join("")}</Error>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
