// The web page: its files from memory, at an explicit list of paths, so that every other path stays a JSON 404. The headers
// let nothing run that is not one of these files, and nothing be fetched from anywhere else.
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { sendPageFile } from "./http/page-file.ts";
import type { Service } from "./service.ts";
import { readWebFiles, WEB_FOLDER, type WebFile } from "./web-files.ts";

/** The addresses of pages. All of them get index.html; its program looks at the address. web/pages/pages.ts has the same. */
export const PAGE_PATHS = [
  "/",
  "/policies",
  "/policies/:id",
  "/jobs/:id",
  "/jobs/:id/lab",
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
export function registerWebFiles(app: FastifyInstance, { log }: Pick<Service, "log">, folder: string): void {
  const files = readWebFiles(folder);
  const index = files?.find(({ name }) => name === "index.html");
  if (files === null || index === undefined) {
    log.warn("the web page is not built; run `npm run build`, or start with --no-ui");
    return;
  }
  const route = { config: { access: "public" as const }, schema: { hide: true } };
  for (const path of PAGE_PATHS) app.get(path, route, (request, reply) => sendFile(request, reply, index));
  for (const file of files) {
    if (file !== index) app.get(`/${file.name}`, route, (request, reply) => sendFile(request, reply, file));
  }
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: WebFile): FastifyReply {
  reply.removeHeader("access-control-allow-origin").removeHeader("access-control-expose-headers");
  const kept = file.isHashed ? "public, max-age=31536000, immutable" : "no-cache";
  reply.removeHeader("vary").headers({ ...SECURITY_HEADERS, "cache-control": kept });
  return sendPageFile(request, reply, file);
}
