// The server's log as a stream, for admins. It has what standard error has: no prompts, no generated text, no tokens.

import type { FastifyInstance } from "fastify";
import type { LogLine } from "../../observe/log.ts";
import { OpenStreams } from "../http/open-streams.ts";
import type { Service } from "../service.ts";

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
