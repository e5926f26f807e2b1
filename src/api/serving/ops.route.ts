// Routes for operators: health, version, metrics, load. Public, because probes and scrapers carry no token.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { LogLine } from "../../observe/log.ts";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { OpenStreams } from "../http/streams.ts";
import { ErrorBody } from "../schema/body.ts";
import { engineFacts, type Service } from "../service.ts";

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

// The server's log as a stream, for admins. It has what standard error has: no prompts, no generated text, no tokens.

/** Lines that a slow reader may have waiting. */
const MOST_HELD = 500;

export function registerLogs(app: FastifyInstance, service: Service): void {
  const { logTail } = service;
  const streams = new OpenStreams(app, service);

  app.get(
    "/v1/logs",
    {
      config: { access: "admin" },
      schema: {
        summary: "The last 500 lines of the log and those to come, as server-sent events called line",
        tags: ["operations"],
        produces: ["text/event-stream"],
      },
    },
    async (_request, reply) => {
      let held: LogLine[] = [];
      const stream = streams.open(reply, () => {
        stream.send(held.map(lineEvent).join(""));
        held = [];
      });
      stream.send(logTail.lines.map(lineEvent).join(""));
      const stop = logTail.watch((line) => {
        if (!stream.blocked) return stream.send(lineEvent(line));
        held.push(line);
        if (held.length > MOST_HELD) held.shift();
      });
      reply.raw.on("close", stop);
      return reply;
    },
  );
}

function lineEvent({ at, level, message, fields }: LogLine): string {
  return `event: line\ndata: ${JSON.stringify({ ...fields, at, level, message })}\n\n`;
}
