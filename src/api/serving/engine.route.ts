// Routes that watch the engine: its queue, cache and throughput, the requests in progress, and a way to end one.

import type { FastifyInstance, FastifyReply } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { type Principal, principalOf } from "../http/auth.ts";
import { type EventStream, OpenStreams } from "../http/streams.ts";
import { type ById, route } from "../route.ts";
import { AnyObject } from "../schema/body.ts";
import type { Service } from "../service.ts";
import { EngineBody, EngineMonitor, EngineSnapshot, type Reading } from "./engine-monitor.ts";

export function registerEngine(app: FastifyInstance, service: Service): void {
  const monitor = new EngineMonitor(service.engine, service.live);
  const streams = new OpenStreams(app, service);
  app.addHook("onClose", async () => monitor.close());

  app.get(
    "/v1/engine",
    route("any", "The engine now and in the last 15 minutes; a stream with Accept: text/event-stream", {
      ...{ reply: EngineBody, chunk: AnyObject },
    }),
    async (request, reply) => {
      const caller = principalOf(request);
      if (request.headers.accept?.includes("text/event-stream")) {
        follow({ service, monitor, streams }, reply, caller);
        return reply;
      }
      const now = new EngineSnapshot(service).for(caller);
      const past = `"history":${JSON.stringify(monitor.history)},"steps":${JSON.stringify(monitor.steps)}`;
      return reply.type("application/json; charset=utf-8").send(`${now},${past}}`);
    },
  );

  app.delete<ById>(
    "/v1/engine/requests/:id",
    route("any", "End a request in progress: one's own or, for admins, any", { reply: null, errors: [400] }),
    async (request, reply) => {
      const caller = principalOf(request);
      const { id } = request.params;
      const found = service.live.called(id, caller);
      if (found.length === 0) throw new ServiceError("unknown_request", `No request ${id} of yours is in progress.`);
      const message = "The request was ended through DELETE /v1/engine/requests.";
      for (const live of found) live.cancel(new ServiceError("request_cancelled", message));
      return reply.code(204).send();
    },
  );
}

interface Followed {
  service: Service;
  monitor: Pick<EngineMonitor, "watch">;
  streams: { open(...args: Parameters<OpenStreams["open"]>): Pick<EventStream, "blocked" | "send" | "cut"> };
}

/**
 * Sends what every reading brings. A reader that is slow misses snapshots and gets the points and steps later. One that is
 * too slow is cut off, and comes back.
 */
export function follow({ service, monitor, streams }: Followed, reply: FastifyReply, caller: Principal): void {
  let held = "";
  const stream = streams.open(reply, () => {
    stream.send(held);
    held = "";
  });
  stream.send(snapshotEvent(new EngineSnapshot(service), caller));
  const stop = monitor.watch((reading) => {
    const { snapshot, changes } = eventsOf(service, reading);
    if (stream.blocked) {
      held += changes;
      if (held.length > service.config.streamBufferBytes) stream.cut();
    } else stream.send(snapshotEvent(snapshot, caller) + changes);
  });
  reply.raw.on("close", stop);
}

function snapshotEvent(snapshot: EngineSnapshot, caller: Principal): string {
  return `event: snapshot\ndata: ${snapshot.for(caller)}}\n\n`;
}

/** Written once for all who watch. */
const written = new WeakMap<Reading, { snapshot: EngineSnapshot; changes: string }>();

function eventsOf(service: Service, reading: Reading) {
  const known = written.get(reading);
  if (known) return known;
  const steps = reading.steps.length > 0 ? `event: steps\ndata: ${JSON.stringify(reading.steps)}\n\n` : "";
  const made = {
    snapshot: new EngineSnapshot(service, reading.stats),
    changes: `event: point\ndata: ${JSON.stringify(reading.point)}\n\n${steps}`,
  };
  written.set(reading, made);
  return made;
}
