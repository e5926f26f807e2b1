// Streams of server-sent events that go on until the client leaves, the server stops, or the client may not read them any
// more. A comment every 15 seconds keeps proxies from closing a quiet one.

import type { FastifyInstance, FastifyReply } from "fastify";
import type { Config } from "../../config/options.ts";
import { errorEnvelope } from "../../errors/service-error.ts";
import type { AccessWatch } from "./access-watch.ts";
import { EventStream, namedEvent } from "./sse.ts";

const HEARTBEAT_MS = 15_000;

interface Parts {
  config: Pick<Config, "streamStallTimeout">;
  access: Pick<AccessWatch, "watch">;
}

export class OpenStreams {
  readonly #parts: Parts;
  readonly #open = new Set<EventStream>();
  readonly #timer: NodeJS.Timeout;

  constructor(app: FastifyInstance, parts: Parts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.#each((stream) => stream.comment("still here")), HEARTBEAT_MS).unref();
    // a server that stops does not wait for streams that have no end of their own
    app.addHook("preClose", async () => {
      clearInterval(this.#timer);
      this.#each((stream) => stream.end(""));
    });
  }

  /** Takes the reply over. `onDrain` is called when a slow reader takes more again. */
  open(reply: FastifyReply, onDrain: () => void): EventStream {
    const { config, access } = this.#parts;
    const stallTimeout = config.streamStallTimeout;
    reply.hijack();
    const stream = new EventStream(reply.raw, { headers: reply.getHeaders(), stallTimeout, onDrain });
    this.#open.add(stream);
    const stop = access.watch(reply.request, (why) =>
      stream.end(namedEvent("error", JSON.stringify(errorEnvelope(why)))),
    );
    reply.raw.on("close", () => {
      this.#open.delete(stream);
      stop();
    });
    return stream;
  }

  #each(work: (stream: EventStream) => void): void {
    for (const stream of this.#open) work(stream);
  }
}
