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

export interface OpenApiDocument {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#151515}td,th{border-color:#444!important}code{background:#2a2a2a!important}a{color:#8ab4f8}}
h2{margin-top:3rem}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}
code{background:#f2f2f2;padding:.1rem .3rem;border-radius:3px;white-space:nowrap}td:nth-child(2) code{white-space:normal}details{margin:.4rem 0}`;

export function referencePage(document: OpenApiDocument): string {
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
