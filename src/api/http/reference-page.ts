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

/** The colours, the letters and the frame of the web page (web/styles/); a test compares the colours. */
const STYLE = `:root{color-scheme:light dark;
--bg:light-dark(#faf9f7,#14161a);--surface:light-dark(#ffffff,#1b1e23);--sunk:light-dark(#f2f0ec,#101215);
--line:light-dark(#e2ded6,#2c3037);--text:light-dark(#1f2328,#e3e6ea);--muted:light-dark(#5f646c,#a0a7b1);
--accent:light-dark(#0b6464,#57c7bb);--accent-soft:light-dark(#e0efee,#17312f)}
*{box-sizing:border-box}
html{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",sans-serif;background:var(--bg);color:var(--text);-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:.8rem .6rem;background:var(--sunk);border-right:1px solid var(--line)}
nav strong{font-size:1.05rem;font-weight:680}nav ul{list-style:none;margin:.6rem 0 0;padding:0}
nav a{display:block;padding:.2rem .4rem;border-radius:7px;color:var(--muted);text-decoration:none;overflow-wrap:anywhere}nav a:hover{color:var(--text);background:var(--line)}
main{padding:.9rem 1.4rem 3rem;max-width:60rem}main p{max-width:58ch}
h1,h2,h3{line-height:1.25;font-weight:620;margin:0}h1{font-size:1.25rem}h2{font-size:1.05rem;overflow-wrap:anywhere}h3{font-size:.95rem;color:var(--muted);margin:.9rem 0 .3rem}
section{margin-top:1.2rem;padding:.9rem 1.1rem;background:var(--surface);border:1px solid var(--line);border-radius:7px}
p{margin:.3rem 0}a{color:var(--accent);text-underline-offset:2px}:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
code{font:.92em ui-monospace,"SF Mono","Cascadia Code",Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--sunk);border-radius:4px;padding:.05em .3em;overflow-wrap:anywhere}
.method{color:var(--accent);background:var(--accent-soft);font-weight:600}.must{color:var(--muted);font-weight:550}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:550;color:var(--muted)}th,td{padding:.28rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
th:first-child,td:first-child{padding-left:0;width:25%}th:nth-child(2){width:22%}summary{cursor:pointer}details{margin:.3rem 0}details table{margin:.2rem 0 .6rem}
.skip{position:absolute;left:-999rem}.skip:focus{left:.5rem;top:.5rem;padding:.4rem .8rem;background:var(--surface)}
@media(max-width:760px){body{display:block}nav{position:static;height:auto;max-height:40vh;border-right:0;border-bottom:1px solid var(--line)}
main{padding:.7rem}section{padding:.7rem}tr,td{display:block;width:auto!important}tr{padding:.3rem 0;border-bottom:1px solid var(--line)}td{border:0;padding:.1rem 0}th{display:none}}`;

export function referencePage({ info, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ id: `${method} ${path}`, path, method, operation })),
  );
  const links = operations.map(
    ({ id, path, method }) => `<li><a href="#${escapeHtml(id)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`,
  );
  const sections = operations.map(({ id, path, method, operation }) =>
    section(id, `<code class="method">${method.toUpperCase()}</code> ${escapeHtml(path)}`, operation),
  );
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<section id="${name}"><h3>${name}</h3>${fields(schema)}</section>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} API reference</title><style>${STYLE}</style>
<a class="skip" href="#routes">Skip to content</a>
<nav aria-label="Routes" tabindex="0"><strong>${escapeHtml(info.title)} API</strong><ul>${links.join("")}<li><a href="#schemas">Schemas</a></li></ul></nav>
<main id="routes" tabindex="-1"><h1>${escapeHtml(info.title)} ${escapeHtml(info.version)}</h1>
<p>${escapeHtml(info.description)} The same for programs: <a href="/openapi.json">openapi.json</a>.</p>
${sections.join("")}<h2 id="schemas">Schemas</h2>${schemas.join("")}</main></html>`;
  function section(
    id: string,
    heading: string,
    { summary, description = "", security, requestBody, responses }: Operation,
  ): string {
    const open = security?.length === 0 ? " No token needed." : "";
    const body = Object.values(requestBody?.content ?? {})[0]?.schema;
    const replies = Object.entries(responses).map(([status, reply]) => replyOf(status, reply));
    return `<section id="${escapeHtml(id)}"><h2>${heading}</h2>
<p>${escapeHtml(summary)}.${open} ${escapeHtml(description)}</p>
${body === undefined ? "" : `<h3>Request</h3>${fields(resolved(body))}`}<h3>Replies</h3>${replies.join("")}</section>`;
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
    const must = schema.required?.includes(name) ? ' <span class="must">required</span>' : "";
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

function roleOf({ properties }: SchemaNode): string | undefined {
  const role = properties?.role;
  if (role === undefined) return undefined;
  const names = role.enum ?? (role.const === undefined ? [] : [role.const]);
  return names.length === 0 ? "any other role" : `role ${names.join(", ")}`;
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
