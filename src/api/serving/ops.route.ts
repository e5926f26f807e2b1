// Routes for operators: health, version, metrics, load. Public, because probes and scrapers carry no token.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { LogLine } from "../../observe/log.ts";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { OpenStreams } from "../http/streams.ts";
import { route } from "../route.ts";
import { Moment } from "../schema/body.ts";
import { engineFacts, type Service } from "../service.ts";

export function registerOps(app: FastifyInstance, service: Service): void {
  const health = async (_request: FastifyRequest, reply: FastifyReply) => {
    service.assertReady();
    return reply.send("");
  };
  app.get(
    "/health",
    route(
      "public",
      "200 while the engine lives, or one of several is ready; 503 otherwise and while the server drains",
      {
        ...{ reply: Type.String({ maxLength: 0 }), type: "text/plain", errors: [503] },
      },
    ),
    health,
  );
  const ping = { config: { access: "public" as const } };
  app.get("/ping", ping, health);
  // some probes post; what they send is not read
  app.post("/ping", { ...ping, onRequest: health }, health);

  const version = Type.Object({ version: Type.String() });
  app.get("/version", route("public", "Version of the server", { reply: version }), async () => ({
    version: PACKAGE_VERSION,
  }));

  const load = Type.Object({ server_load: Type.Integer() });
  app.get(
    "/load",
    route("public", "Requests in progress or waiting; 0 with --no-enable-server-load-tracking", { reply: load }),
    async () => ({ server_load: service.config.enableServerLoadTracking ? service.admission.requests : 0 }),
  );

  app.get(
    "/metrics",
    route("public", "Prometheus metrics, with vLLM's names", { reply: Type.String(), type: "text/plain" }),
    async (_request, reply) => {
      const text = await service.metrics.render(engineFacts(service));
      return reply.type(service.metrics.contentType).send(text);
    },
  );
}

// The server's log as a stream, for admins. It has what standard error has: no prompts, no generated text, no tokens.

const LogEvent = Type.Object(
  { at: Moment, level: Type.String(), message: Type.String() },
  { additionalProperties: true },
);

/** Lines that a slow reader may have waiting. */
const MOST_HELD = 500;

export function registerLogs(app: FastifyInstance, service: Service): void {
  const { logTail } = service;
  const streams = new OpenStreams(app, service);

  app.get(
    "/v1/logs",
    route("admin", "The last 500 lines of the log and those to come, as server-sent events called line", {
      chunk: LogEvent,
    }),
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
