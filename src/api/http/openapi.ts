// /openapi.json, made from the route schemas, and /docs, a reference page made from that, both once for all requests. The
// page has no scripts and no downloads, so it works offline. openapi.json in the repository is the same text; a test compares them.

import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import swagger from "@fastify/swagger";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { ErrorBody } from "../schema/body.ts";

// The replies of every route that say what went wrong, in one table, and an OpenAPI document in which routes refer to it
// instead of repeating it.

type Responses = Record<string, object>;

export interface DescribedOperation {
  tags?: string[];
  security?: unknown[];
  requestBody?: { content?: Record<string, { schema?: { properties?: object } }> };
  responses?: Responses;
}

interface CommonError {
  description: string;
  /** Which routes give it; every route that names its status does. */
  given(operation: DescribedOperation, path: string): boolean;
}

const isClosed = ({ security }: DescribedOperation) => security?.length !== 0;
const has = ({ tags }: DescribedOperation, tag: string) => tags?.includes(tag) === true;
const takesBody = ({ requestBody }: DescribedOperation) => requestBody !== undefined;
/** Or a job: something that may not be there. */
const namesModel = ({ requestBody }: DescribedOperation) =>
  Object.values(requestBody?.content ?? {}).some(({ schema }) =>
    /"(?:model|model_id|spec)":/.test(JSON.stringify(schema)),
  );

/** By status. */
const COMMON_ERRORS: Record<string, CommonError> = {
  400: { description: "The request is not valid.", given: takesBody },
  401: { description: "The token is missing, unknown, revoked or expired.", given: isClosed },
  403: { description: "The token lacks the scope that the route needs.", given: isClosed },
  404: {
    description: "The caller has nothing of this name.",
    given: (operation, path) => path.includes("{") || namesModel(operation),
  },
  409: {
    description: "The request conflicts with what is there, or was ended.",
    given: (operation) => takesBody(operation) && (has(operation, "inference") || has(operation, "training")),
  },
  413: { description: "The body is too large.", given: takesBody },
  422: { description: "A field is not valid.", given: () => false },
  429: {
    description: "The server is full, or a limit is reached.",
    given: (operation) =>
      has(operation, "inference") || (takesBody(operation) && (has(operation, "text") || has(operation, "training"))),
  },
  503: { description: "Try again later.", given: isClosed },
  507: { description: "The disk is full.", given: (operation) => takesBody(operation) && has(operation, "training") },
};

/** Shares the errors of all operations: `components.responses` has one of each shape and status. */
function withCommonErrors<D extends { paths?: object; components?: object }>(document: D): D {
  const responses: Responses = {};
  const schemas: Responses = {};
  const paths = Object.entries((document.paths ?? {}) as Record<string, Record<string, DescribedOperation>>);
  for (const [path, methods] of paths) {
    for (const operation of Object.values(methods)) operation.responses = shared(operation, path);
  }
  return { ...document, components: { ...document.components, schemas, responses } };

  function shared(operation: DescribedOperation, path: string): Responses {
    const own = operation.responses ?? {};
    const shapes = Object.entries(own)
      .filter(([status]) => status in COMMON_ERRORS)
      .map(([, reply]) => schemaOf(reply));
    const shape = shapes[0] ?? ErrorBody;
    const all: Responses = { ...own };
    for (const [status, { description, given }] of Object.entries(COMMON_ERRORS)) {
      if (!(status in own) && !given(operation, path)) continue;
      const schema = status in own ? schemaOf(own[status]!) : shape;
      const name = String((schema as { title?: string }).title);
      schemas[name] = schema;
      const content = { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } };
      responses[`${name}${status}`] = { description, content };
      all[status] = { $ref: `#/components/responses/${name}${status}` };
    }
    return all;
  }
}

function schemaOf(reply: object): object {
  const { content = {} } = reply as { content?: Record<string, { schema?: object }> };
  return Object.values(content)[0]?.schema ?? ErrorBody;
}

/** Almost as small as the best, in a fraction of its time: every start of the server pays for it. */
const BROTLI_QUALITY = 5;

export function registerOpenApi(app: FastifyInstance): void {
  app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Flywheel",
        version: PACKAGE_VERSION,
        description: "Chat completions in the OpenAI/vLLM dialect, and the routes around them.",
      },
      components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
      security: [{ bearer: [] }],
    },
    // Routes have a wildcard because ids contain slashes. Clients see a parameter.
    transform: ({ schema, url }) => ({ schema, url: url.replace("/*", "/:id") }),
  });
  app.register(async (scope) => {
    let document: PageFile | null = null;
    let page: PageFile | null = null;
    scope.addHook("onReady", async () => {
      const described = withCommonErrors(app.swagger());
      document = await fileOf("application/json; charset=utf-8", JSON.stringify(described));
      page = await fileOf("text/html; charset=utf-8", referencePage(described as unknown as OpenApiDocument));
    });
    const hidden = { config: { access: "public" as const }, schema: { hide: true } };
    scope.get("/openapi.json", hidden, async (request, reply) => sendPageFile(request, reply, document!));
    scope.get("/docs", hidden, async (request, reply) => {
      reply.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'");
      return sendPageFile(request, reply, page!);
    });
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

// An OpenAPI document → one HTML page: routes, their fields with types and notes, and replies.

interface SchemaNode {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, SchemaNode>;
  required?: string[];
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  allOf?: SchemaNode[];
  patternProperties?: Record<string, SchemaNode>;
}

interface Operation {
  summary?: string;
  description?: string;
  security?: unknown[];
  requestBody?: { content: Record<string, { schema: SchemaNode }> };
  /** Common errors are references. */
  responses?: Record<
    string,
    { description?: string; content?: Record<string, { schema?: SchemaNode }>; $ref?: string }
  >;
}

interface OpenApiDocument {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#151515}td,th{border-color:#444!important}code{background:#2a2a2a!important}a{color:#8ab4f8}}
h2{margin-top:3rem}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}
code{background:#f2f2f2;padding:.1rem .3rem;border-radius:3px;white-space:nowrap}td:nth-child(2) code{white-space:normal}details{margin:.4rem 0}`;

function referencePage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ id: `${method} ${path}`, path, method, operation })),
  );
  const links = operations.map(
    ({ id, path, method }) => `<li><a href="#${escapeHtml(id)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`,
  );
  const sections = operations.map(({ id, path, method, operation }) => section(id, path, method, operation));
  const { title, version, description = "" } = document.info;
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)} API reference</title><style>${STYLE}</style>
<h1>${escapeHtml(title)} ${escapeHtml(version)}</h1><p>${escapeHtml(description)} The machine-readable form is <a href="/openapi.json">openapi.json</a>.</p>
<ul>${links.join("")}</ul>${sections.join("")}</html>`;
}

function section(id: string, path: string, method: string, operation: Operation): string {
  const open = operation.security?.length === 0 ? " No token needed." : "";
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const replies = Object.entries(operation.responses ?? {}).map(([status, reply]) => {
    const [, shape, of] = /(\w+?)(\d+)$/.exec(reply.$ref ?? "") ?? [];
    if (of !== undefined) return `<p><code>${of}</code> ${escapeHtml(shape!)}</p>`;
    const contents = Object.entries(reply.content ?? {});
    return contents.map(([type, { schema }]) => details(`${status} ${type}`, schema)).join("");
  });
  return `<h2 id="${escapeHtml(id)}"><code>${method.toUpperCase()}</code> ${escapeHtml(path)}</h2>
<p>${escapeHtml(operation.summary ?? "")}.${open} ${escapeHtml(operation.description ?? "")}</p>
${body === undefined ? "" : `<h3>Request body</h3>${fields(body)}`}<h3>Replies</h3>${replies.join("")}`;
}

function details(summary: string, schema: SchemaNode | undefined): string {
  if (schema === undefined || schema.type === "null") return `<p><code>${escapeHtml(summary)}</code></p>`;
  return `<details><summary><code>${escapeHtml(summary)}</code> ${escapeHtml(schema.title ?? "")}</summary>${fields(schema)}</details>`;
}

function fields(schema: SchemaNode): string {
  if (schema.properties === undefined) return `<p>${typeOf(schema)} ${escapeHtml(schema.description ?? "")}</p>`;
  const rows = Object.entries(schema.properties).map(([name, field]) => {
    const must = schema.required?.includes(name) ? " <b>required</b>" : "";
    const initial =
      field.default === undefined ? "" : ` Default: <code>${escapeHtml(JSON.stringify(field.default))}</code>.`;
    const inner = nested(field);
    return `<tr><td><code>${escapeHtml(name)}</code>${must}</td><td><code>${typeOf(field)}</code></td><td>${escapeHtml(field.description ?? "")}${initial}${inner}</td></tr>`;
  });
  return `<table><tr><th>Field</th><th>Type</th><th>Notes</th></tr>${rows.join("")}</table>`;
}

/** Tables of the objects inside a field, folded. */
function nested(field: SchemaNode): string {
  const objects = [
    field,
    ...(field.anyOf ?? []),
    ...(field.items === undefined ? [] : [field.items, ...(field.items.anyOf ?? [])]),
  ];
  return objects
    .filter((node) => node.properties !== undefined)
    .map(
      (node) =>
        `<details><summary>${escapeHtml(node.title ?? roleOf(node) ?? "fields")}</summary>${fields(node)}</details>`,
    )
    .join("");
}

function roleOf(node: SchemaNode): string | undefined {
  const role = node.properties?.role?.const;
  return role === undefined ? undefined : `role ${String(role)}`;
}

function typeOf(node: SchemaNode): string {
  if (node.anyOf !== undefined) return [...new Set(node.anyOf.map(typeOf))].join(" | ");
  if (node.const !== undefined || node.enum !== undefined) {
    return (node.enum ?? [node.const]).map((value) => escapeHtml(JSON.stringify(value))).join(" | ");
  }
  if (node.type === "array") return `array of ${node.items === undefined ? "anything" : typeOf(node.items)}`;
  return escapeHtml(node.type ?? (node.allOf === undefined ? "any" : "object"));
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
