// The web page: its files from memory, at an explicit list of paths. At every other path a browser gets the page as a 404,
// and programs get JSON. The headers let nothing run that is not one of these files, and nothing be fetched from anywhere else.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ENCODINGS, type Encoding, etagOf, type PageFile, sendPageFile } from "./http/openapi.ts";
import type { Service } from "./service.ts";

// The files of the web page as `npm run build` left them in dist/web, read once and kept in memory: six files and their
// compressed forms, about 100 kB.

const WEB_FOLDER: URL = new URL("../../dist/web/", import.meta.url);

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

interface WebFile extends PageFile {
  /** From the folder, with slashes: "assets/index-1a2b.js". */
  name: string;
  /** Its name has a hash of its content. */
  isHashed: boolean;
}

/** Null if the page was not built. */
export function readWebFiles(folder: string): WebFile[] | null {
  if (!existsSync(join(folder, "index.html"))) return null;
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => name.replaceAll("\\", "/"));
  return names
    .filter((name) => extname(name) in TYPES)
    .map((name) => {
      const body = readFileSync(join(folder, name));
      const compressed: WebFile["compressed"] = {};
      for (const [encoding, ending] of Object.entries(ENCODINGS)) {
        if (names.includes(name + ending)) compressed[encoding as Encoding] = readFileSync(join(folder, name + ending));
      }
      const isHashed = name.startsWith("assets/");
      return { name, type: TYPES[extname(name)]!, body, compressed, etag: etagOf(body), isHashed };
    });
}

/** The addresses of pages. All of them get index.html; its program looks at the address. web/pages/pages.ts has the same. */
export const PAGE_PATHS = [
  "/",
  "/policies",
  "/policies/:id",
  "/jobs",
  "/jobs/:id",
  "/jobs/:id/lab",
  "/jobs/:id/:group",
  "/jobs/:id/:group/:trajectory",
  "/serving",
  "/access",
] as const;

const SECURITY_HEADERS: Record<string, string> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

export function registerWeb(app: FastifyInstance, service: Service): void {
  registerWebFiles(app, service, fileURLToPath(WEB_FOLDER));
}

/** `folder`: where the built page is. Without it the server answers everything but the page. */
export function registerWebFiles(
  app: FastifyInstance,
  service: Pick<Service, "log" | "missingPage">,
  folder: string,
): void {
  const files = readWebFiles(folder);
  const index = files?.find(({ name }) => name === "index.html");
  if (files === null || index === undefined) {
    service.log.warn("the web page is not built; run `npm run build`, or start with --no-ui");
    return;
  }
  const route = { config: { access: "public" as const } };
  for (const path of PAGE_PATHS) app.get(path, route, (request, reply) => sendFile(request, reply, index));
  for (const file of files) {
    if (file !== index) app.get(`/${file.name}`, route, (request, reply) => sendFile(request, reply, file));
  }
  service.missingPage = (request, reply) => (asksForPage(request) ? sendFile(request, reply.code(404), index) : null);
}

/** As browsers do for an address, and programs do not. Below /v1 everybody is a program. */
function asksForPage({ method, headers, url }: FastifyRequest): boolean {
  return method === "GET" && (headers.accept ?? "").includes("text/html") && !/^\/v1([/?]|$)/.test(url);
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: WebFile): FastifyReply {
  reply.removeHeader("access-control-allow-origin").removeHeader("access-control-expose-headers");
  const kept = file.isHashed ? "public, max-age=31536000, immutable" : "no-cache";
  reply.removeHeader("vary").headers({ ...SECURITY_HEADERS, "cache-control": kept });
  return sendPageFile(request, reply, file);
}
