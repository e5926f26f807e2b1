// /openapi.json, made from the route schemas, and /docs, a reference page made from that. The page has no scripts and no
// downloads, so it works offline. openapi.json in the repository is the same text; a test compares them.
import swagger from "@fastify/swagger";
import type { FastifyInstance } from "fastify";
import { PACKAGE_VERSION } from "../system/version.ts";
import { type OpenApiDocument, referencePage } from "./reference-page.ts";

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
    const hidden = { config: { access: "public" as const }, schema: { hide: true } };
    scope.get("/openapi.json", hidden, async () => app.swagger());
    scope.get("/docs", hidden, async (_request, reply) => {
      const html = referencePage(app.swagger() as unknown as OpenApiDocument);
      return reply
        .type("text/html; charset=utf-8")
        .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
        .send(html);
    });
  });
}
