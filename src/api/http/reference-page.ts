// An OpenAPI document → one HTML page: routes, their fields with types and notes, replies, and the schemas they refer to. It has
// no scripts and no downloads, so it works offline.

interface SchemaNode {
  $ref?: string;
  type?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, SchemaNode>;
  required?: string[];
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  allOf?: SchemaNode[];
}

interface Reply {
  $ref?: string;
  content?: Record<string, { schema: SchemaNode }>;
}

interface Operation {
  summary: string;
  description?: string;
  security?: unknown[];
  requestBody?: { content: Record<string, { schema: SchemaNode }> };
  responses: Record<string, Reply>;
}

/** What the page reads of it. */
interface OpenApiDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, SchemaNode>; responses: Record<string, Reply> };
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#151515}td,th{border-color:#444!important}code{background:#2a2a2a!important}a{color:#8ab4f8}}
h2{margin-top:3rem}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}
code{background:#f2f2f2;padding:.1rem .3rem;border-radius:3px;white-space:nowrap}td:nth-child(2) code{white-space:normal}details{margin:.4rem 0}`;

export function referencePage({ info, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ id: `${method} ${path}`, path, method, operation })),
  );
  const links = operations.map(
    ({ id, path, method }) => `<li><a href="#${escapeHtml(id)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`,
  );
  const sections = operations.map(({ id, path, method, operation }) =>
    section(`<h2 id="${escapeHtml(id)}"><code>${method.toUpperCase()}</code> ${escapeHtml(path)}</h2>`, operation),
  );
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<h3 id="${name}">${name}</h3>${fields(schema)}`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(info.title)} API reference</title><style>${STYLE}</style>
<h1>${escapeHtml(info.title)} ${escapeHtml(info.version)}</h1><p>${escapeHtml(info.description)} The machine-readable form is <a href="/openapi.json">openapi.json</a>.</p>
<ul>${links.join("")}<li><a href="#schemas">Schemas</a></li></ul>${sections.join("")}<h2 id="schemas">Schemas</h2>${schemas.join("")}</html>`;

  function section(
    heading: string,
    { summary, description = "", security, requestBody, responses }: Operation,
  ): string {
    const open = security?.length === 0 ? " No token needed." : "";
    const body = Object.values(requestBody?.content ?? {})[0]?.schema;
    const replies = Object.entries(responses).map(([status, reply]) => replyOf(status, reply));
    return `${heading}<p>${escapeHtml(summary)}.${open} ${escapeHtml(description)}</p>
${body === undefined ? "" : `<h3>Request body</h3>${fields(resolved(body))}`}<h3>Replies</h3>${replies.join("")}`;
  }

  function resolved(schema: SchemaNode): SchemaNode {
    return schema.$ref === undefined ? schema : components.schemas[lastPart(schema.$ref)]!;
  }

  function replyOf(status: string, reply: Reply): string {
    const { content = {} } = reply.$ref === undefined ? reply : components.responses[lastPart(reply.$ref)]!;
    const rows = Object.entries(content).map(
      ([type, { schema }]) => `${escapeHtml(type)}: ${typeOf(schema)}${nested(schema)}`,
    );
    return `<p><code>${status}</code> ${rows.join("<br>")}</p>`;
  }
}

const lastPart = (reference: string) => reference.slice(reference.lastIndexOf("/") + 1);

function fields(schema: SchemaNode): string {
  if (schema.properties === undefined) {
    return `<p><code>${typeOf(schema)}</code> ${escapeHtml(schema.description ?? "")}${nested(schema)}</p>`;
  }
  const rows = Object.entries(schema.properties).map(([name, field]) => {
    const must = schema.required?.includes(name) ? " <b>required</b>" : "";
    const initial =
      field.default === undefined ? "" : ` Default: <code>${escapeHtml(JSON.stringify(field.default))}</code>.`;
    return `<tr><td><code>${escapeHtml(name)}</code>${must}</td><td><code>${typeOf(field)}</code></td><td>${escapeHtml(field.description ?? "")}${initial}${nested(field)}</td></tr>`;
  });
  return `<table><tr><th>Field</th><th>Type</th><th>Notes</th></tr>${rows.join("")}</table>`;
}

/** Tables of the objects inside a field that have no name, folded. */
function nested(field: SchemaNode): string {
  const objects = [
    field,
    ...(field.anyOf ?? []),
    ...(field.items === undefined ? [] : [field.items, ...(field.items.anyOf ?? [])]),
  ];
  return objects
    .filter((node) => node.properties !== undefined)
    .map((node) => `<details><summary>${escapeHtml(roleOf(node) ?? "fields")}</summary>${fields(node)}</details>`)
    .join("");
}

function roleOf(node: SchemaNode): string | undefined {
  const role = node.properties?.role?.const;
  return role === undefined ? undefined : `role ${String(role)}`;
}

/** In HTML: names are links. */
function typeOf(node: SchemaNode): string {
  if (node.$ref !== undefined) return `<a href="#${lastPart(node.$ref)}">${lastPart(node.$ref)}</a>`;
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
