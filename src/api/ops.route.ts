// Routes for operators: health, version, metrics, load. Public, because probes and scrapers carry no token.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { PACKAGE_VERSION } from "../system/package.ts";
import { ErrorBody } from "./request/schema-parts.ts";
import { engineFacts, type Service } from "./service.ts";

const publicRoute = { access: "public" } as const;

export function registerOps(app: FastifyInstance, service: Service): void {
  const health = {
    config: publicRoute,
    schema: {
      summary: "200 while the engine lives, or one of several is ready; 503 otherwise and while the server drains",
      tags: ["operations"],
      security: [],
      response: { 200: Type.Null(), 503: ErrorBody },
    },
  };
  for (const [path, hide] of [
    ["/health", false],
    ["/ping", true],
  ] as const) {
    const route = { ...health, schema: { ...health.schema, hide } };
    const answer = async (_request: FastifyRequest, reply: FastifyReply) => {
      service.assertReady();
      return reply.send("");
    };
    app.get(path, route, answer);
    // some probes post; what they send is not read
    if (path === "/ping") app.post(path, { ...route, onRequest: answer }, answer);
  }

  const version = Type.Object({ version: Type.String() });
  app.get(
    "/version",
    {
      config: publicRoute,
      schema: { summary: "Version of the server", tags: ["operations"], security: [], response: { 200: version } },
    },
    async () => ({ version: PACKAGE_VERSION }),
  );

  const load = Type.Object({ server_load: Type.Integer() });
  app.get(
    "/load",
    {
      config: publicRoute,
      schema: {
        summary: "Requests in progress or waiting; 0 with --no-enable-server-load-tracking",
        tags: ["operations"],
        security: [],
        response: { 200: load },
      },
    },
    async () => ({ server_load: service.config.enableServerLoadTracking ? service.admission.requests : 0 }),
  );

  app.get(
    "/metrics",
    {
      config: publicRoute,
      schema: {
        summary: "Prometheus metrics, with vLLM's names",
        tags: ["operations"],
        security: [],
        produces: ["text/plain"],
        response: { 200: Type.String() },
      },
    },
    async (_request, reply) => {
      const text = await service.metrics.render(engineFacts(service));
      return reply.type(service.metrics.contentType).send(text);
    },
  );
}
