// Streams of server-sent events that go on until the client leaves or the server stops. A comment every 15 seconds keeps
// proxies from closing a quiet one.

import type { FastifyInstance, FastifyReply } from "fastify";
import { EventStream } from "../http/sse.ts";

const HEARTBEAT_MS = 15_000;

export class OpenStreams {
  readonly #stallTimeout: number;
  readonly #open = new Set<EventStream>();
  readonly #timer: NodeJS.Timeout;

  /** `stallTimeout`: in seconds. */
  constructor(app: FastifyInstance, stallTimeout: number) {
    this.#stallTimeout = stallTimeout;
    this.#timer = setInterval(() => this.#each((stream) => stream.send(": still here\n\n")), HEARTBEAT_MS).unref();
    app.addHook("preClose", async () => {
      clearInterval(this.#timer);
      this.#each((stream) => stream.end(""));
    });
  }

  /** Takes the reply over. `onDrain` is called when a slow reader takes more again. */
  open(reply: FastifyReply, onDrain: () => void): EventStream {
    reply.hijack();
    const stream = new EventStream(reply.raw, {
      ...{ headers: reply.getHeaders(), stallTimeout: this.#stallTimeout, onDrain },
    });
    this.#open.add(stream);
    reply.raw.on("close", () => this.#open.delete(stream));
    return stream;
  }

  #each(work: (stream: EventStream) => void): void {
    for (const stream of this.#open) work(stream);
  }
}
