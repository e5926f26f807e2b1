// /openapi.json, made from the route schemas, and /docs, a reference page made from that, both once for all requests. The
// page has no scripts and no downloads, so it works offline. openapi.json in the repository is the same text; a test compares them.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import swagger from "@fastify/swagger";
import type { FastifyInstance } from "fastify";
import { PACKAGE_VERSION } from "../system/package.ts";
import { withCommonErrors } from "./common-errors.ts";
import { etagOf, type PageFile, sendPageFile } from "./http/page-file.ts";
import { type OpenApiDocument, referencePage } from "./reference-page.ts";

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
