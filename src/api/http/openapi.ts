// /openapi.json, written from what the routes say of themselves (../route.ts), and /docs, a reference page made from that,
// both once for all requests. openapi.json in the repository is the same text; a test compares them.

import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import type { TObject, TSchema } from "typebox";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { ErrorBody } from "../schema/body.ts";
import type { Access } from "./auth.ts";
import { referencePage } from "./reference-page.ts";

export interface RouteDescription {
  summary: string;
  description?: string;
  body?: TSchema;
  query?: TObject;
  /** Of a 200; null: a 204 without a body. */
  reply?: TSchema | null;
  /** Of the reply, if it is not JSON. */
  type?: string;
  /** An event of the stream that the reply is, or may be. */
  chunk?: TSchema;
  /** Statuses beyond those that follow from access, body and path. */
  errors?: readonly number[];
  /** Of the errors, if it is not that of the part. */
  errorBody?: TSchema;
}

/** A part of the interface: what its routes have in common. */
export interface Part {
  tag: string;
  errorBody?: TSchema;
  /** Statuses of all its routes that need a token. */
  errors?: readonly number[];
}

declare module "fastify" {
  interface FastifyContextConfig {
    described?: RouteDescription;
    part?: Part;
  }
}

/** All routes that the scope gets from now on belong to the part. */
export function inPart(scope: FastifyInstance, part: Part): void {
  scope.addHook("onRoute", (route) => {
    route.config = { ...route.config, part };
  });
}

interface CommonError {
  description: string;
  /** Which routes give it, beside those that name it. */
  given(route: Judged): boolean;
}

interface Judged {
  access: Access;
  path: string;
  body: TSchema | undefined;
  tag: string | undefined;
}

const isClosed = ({ access }: Judged) => access !== "public";
const takesBody = ({ body }: Judged) => body !== undefined;
const generates = ({ access, body }: Judged) => access === "inference" && body !== undefined;
const trains = ({ tag, body }: Judged) => tag === "training" && body !== undefined;
/** Or a job: something that may not be there. */
const namesModel = ({ body }: Judged) => body !== undefined && /"(?:model|model_id|spec)":/.test(JSON.stringify(body));

const ERRORS: Record<number, CommonError> = {
  400: { description: "The request is not valid.", given: takesBody },
  401: { description: "The token is missing, unknown, revoked or expired.", given: isClosed },
  403: { description: "The token lacks the scope that the route needs.", given: isClosed },
  404: {
    description: "The caller has nothing of this name.",
    given: (route) => route.path.includes("{") || generates(route) || namesModel(route),
  },
  409: {
    description: "The request conflicts with what is there, or was ended.",
    given: (route) => generates(route) || trains(route),
  },
  413: { description: "The body is too large.", given: takesBody },
  422: { description: "A field is not valid.", given: () => false },
  429: {
    description: "The server is full, or a limit is reached.",
    given: (route) => generates(route) || trains(route),
  },
  502: { description: "Another server failed.", given: () => false },
  503: { description: "Try again later.", given: isClosed },
  507: { description: "The disk is full.", given: trains },
};

/** The pattern of a record's keys. */
const ANY_KEY = "^.*$";

/** Writes the operations of routes. Every schema with a title, and every error, is written once and referred to. */
class Components {
  readonly schemas: Record<string, object> = {};
  readonly responses: Record<string, object> = {};
  readonly #written = new Map<object, object>();

  operation(method: string, path: string, { access = "admin", described, part }: Described): object {
    const { summary, description, body, query, errors = [], errorBody } = described;
    const named = access === "public" ? errors : [...errors, ...(part?.errors ?? [])];
    const follows = (status: number) => ERRORS[status]!.given({ access, path, body, tag: part?.tag });
    const statuses = Object.keys(ERRORS)
      .map(Number)
      .filter((status) => named.includes(status) || follows(status));
    return {
      operationId: operationId(method, path),
      ...(part === undefined ? {} : { tags: [part.tag] }),
      ...{ summary, description },
      ...(access === "public" ? { security: [] } : {}),
      parameters: [...pathParameters(path), ...this.#queryParameters(query)],
      ...(body && { requestBody: { required: true, content: { "application/json": { schema: this.schema(body) } } } }),
      responses: { ...this.#success(described), ...this.#errors(statuses, errorBody ?? part?.errorBody ?? ErrorBody) },
    };
  }

  /** Throws when another schema has the same title. */
  schema(node: unknown): unknown {
    if (Array.isArray(node)) return node.map((item) => this.schema(item));
    if (typeof node !== "object" || node === null) return node;
    const known = this.#written.get(node);
    if (known !== undefined) return known;
    const written = this.#membersOf(node);
    const { title } = node as { title?: unknown };
    if (typeof title !== "string") return written;
    const other = this.schemas[title];
    if (other !== undefined && JSON.stringify(other) !== JSON.stringify(written)) {
      throw new Error(`Two schemas of the API have the title ${title}.`);
    }
    this.schemas[title] = written;
    const reference = { $ref: `#/components/schemas/${title}` };
    this.#written.set(node, reference);
    return reference;
  }

  #membersOf(node: object): object {
    const members = Object.entries(node).map(([key, value]) => {
      // as most readers of schemas know records
      if (key === "patternProperties" && ANY_KEY in value) return ["additionalProperties", this.schema(value[ANY_KEY])];
      return [key, this.schema(value)];
    });
    return Object.fromEntries(members);
  }

  #queryParameters(query?: TObject): object[] {
    const { properties = {}, required = [] as readonly string[] } = query ?? {};
    return Object.entries(properties).map(([name, schema]) => {
      const { description, ...rest } = schema as { description?: string };
      return { name, in: "query", required: required.includes(name), description, schema: this.schema(rest) };
    });
  }

  #success({ reply, type = "application/json", chunk }: RouteDescription): Record<number, object> {
    if (reply === null) return { 204: { description: "Done." } };
    const content = {
      ...(reply && { [type]: { schema: this.schema(reply) } }),
      ...(chunk && { "text/event-stream": { schema: this.schema(chunk) } }),
    };
    return reply || chunk ? { 200: { description: "The reply.", content } } : {};
  }

  #errors(statuses: readonly number[], body: TSchema): Record<number, object> {
    const schema = this.schema(body);
    const { title } = body as { title?: string };
    const reference = (status: number) => {
      const { description } = ERRORS[status]!;
      this.responses[`${title}${status}`] = { description, content: { "application/json": { schema } } };
      return [status, { $ref: `#/components/responses/${title}${status}` }];
    };
    return Object.fromEntries(statuses.map(reference));
  }
}

type Described = NonNullable<RouteOptions["config"]> & { described: RouteDescription };

/** `get`, `/v1/models/{id}` → getV1ModelsById */
function operationId(method: string, path: string): string {
  const words = path.replace(/\{(\w+)\}/g, " by $1 ").split(/[^A-Za-z0-9]+/);
  return method + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

function pathParameters(path: string): object[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => {
    return { name, in: "path", required: true, schema: { type: "string" } };
  });
}

/** Of a pattern of the router. One has a wildcard because ids contain slashes; clients see a parameter. */
function pathOf(pattern: string): string {
  return pattern
    .replace("/*", "/{id}")
    .replace(/(?<!:):(\w+)(\([^)]*\))?/g, "{$1}")
    .replaceAll("::", ":");
}

function openApiDocument(routes: readonly RouteOptions[]): object {
  const components = new Components();
  const paths: Record<string, Record<string, object>> = {};
  for (const { url, method, config } of routes) {
    if (config?.described === undefined || method === "HEAD") continue;
    const path = pathOf(url);
    const name = String(method).toLowerCase();
    paths[path] = { ...paths[path], [name]: components.operation(name, path, config as Described) };
  }
  const { schemas, responses } = components;
  return {
    openapi: "3.1.0",
    info: {
      title: "Flywheel",
      version: PACKAGE_VERSION,
      description: "Chat completions in the OpenAI/vLLM dialect, and the routes around them.",
    },
    components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } }, schemas, responses },
    paths,
    security: [{ bearer: [] }],
  };
}

/** Almost as small as the best, in a fraction of its time: every start of the server pays for it. */
const BROTLI_QUALITY = 5;

/** Describes the routes that are registered after it. */
export function registerOpenApi(app: FastifyInstance): void {
  const routes: RouteOptions[] = [];
  app.addHook("onRoute", (route) => {
    routes.push(route);
  });
  let document: PageFile | null = null;
  let page: PageFile | null = null;
  app.addHook("onReady", async () => {
    const text = JSON.stringify(openApiDocument(routes));
    document = await fileOf("application/json; charset=utf-8", text);
    page = await fileOf("text/html; charset=utf-8", referencePage(JSON.parse(text)));
  });
  const open = { config: { access: "public" as const } };
  app.get("/openapi.json", open, async (request, reply) => sendPageFile(request, reply, document!));
  app.get("/docs", open, async (request, reply) => {
    reply.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'");
    return sendPageFile(request, reply, page!);
  });
}

/** Compressed in threads: the texts are large. */
async function fileOf(type: string, text: string): Promise<PageFile> {
  const body = Buffer.from(text);
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(body),
  ]);
  return { type, body, compressed: { br, gzip: gz }, etag: etagOf(body) };
}

// A text that never changes while the server runs, in memory with its compressed forms. A GET costs hardly more than
// finding it: nothing is built or compressed for a request.

/** In the order of preference, with the ending of the compressed file. */
export const ENCODINGS = { br: ".br", gzip: ".gz" } as const;
export type Encoding = keyof typeof ENCODINGS;

export interface PageFile {
  type: string;
  body: Buffer;
  compressed: Partial<Record<Encoding, Buffer>>;
  etag: string;
}

export function etagOf(body: Buffer): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
}

/** 304 for whoever has it; else the smallest form that the client takes. */
export function sendPageFile(request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const vary = reply.getHeader("vary");
  reply.headers({ vary: vary === undefined ? "accept-encoding" : `${vary}, accept-encoding`, etag: file.etag });
  const known = (request.headers["if-none-match"] ?? "").split(/\s*,\s*/).map((tag) => tag.replace(/^W\//, ""));
  if (known.includes(file.etag)) return reply.code(304).send();
  const encoding = bestEncoding(request.headers["accept-encoding"], file);
  if (encoding !== null) reply.header("content-encoding", encoding);
  return reply.type(file.type).send(encoding === null ? file.body : file.compressed[encoding]);
}

/** The best encoding that the client takes and the file has; null: as it is. */
export function bestEncoding(accepted: string | undefined, file: Pick<PageFile, "compressed">): Encoding | null {
  const takes = new Set(
    (accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.trim().split(/\s*;\s*/))
      .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ""))
      .map(([name]) => name),
  );
  const names = Object.keys(ENCODINGS) as Encoding[];
  return names.find((name) => takes.has(name) && file.compressed[name] !== undefined) ?? null;
}
