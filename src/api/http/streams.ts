// Replies that take long: events, slow readers, clients that are gone, streams that end with the server.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Config } from "../../config/options.ts";
import { errorEnvelope } from "../../errors/service-error.ts";
import type { AccessWatch } from "./auth.ts";

// Notices that a client left before its response was complete, so that work for it can stop.

/** Whether `error` only says that the client left before it had sent its body. Nothing failed here then. */
export function leftWhileSending(request: IncomingMessage, error: unknown): boolean {
  return request.destroyed && !request.complete && (error as NodeJS.ErrnoException).code === "ECONNRESET";
}

export function clientGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const { socket } = response.req;
  const leave = () => {
    if (!response.writableFinished) gone.abort();
  };
  if (response.destroyed || socket.destroyed) gone.abort();
  response.once("close", () => {
    socket.off("close", leave);
    leave();
  });
  // A response that waits behind others on its connection is not told when the connection ends. There may be many.
  socket.setMaxListeners(0);
  socket.once("close", leave);
  return gone.signal;
}

// Notices that a client does not read its response. Until it is read, a reply takes up memory.

const SHORTEST_MS = 1000;

/** Ends the response once its client stalls; call it when the reply is about to be written. */
export function cutStalledReader(response: ServerResponse, seconds: number): void {
  new ReaderClock(response, Math.max(SHORTEST_MS, seconds * 1000), () => response.destroy()).start();
}

/**
 * Runs `onStall` once nothing of a started response has left for `milliseconds`, or up to twice as long. Uses the
 * socket's own clock: only the socket knows how much of a large write was taken, while `bytesWritten` counts all of it at
 * once. The clock of a response that waits behind others starts when its turn comes.
 */
class ReaderClock {
  readonly #response: ServerResponse;
  readonly #milliseconds: number;

  constructor(response: ServerResponse, milliseconds: number, onStall: () => void) {
    this.#response = response;
    this.#milliseconds = Math.max(1, milliseconds); // 0 would be no clock at all
    response.on("timeout", onStall);
    // Runs before the server's own listener, which starts the clock of an idle connection. This clock must not go on
    // into the next response, which may take long to compute.
    response.prependOnceListener("finish", () => this.stop());
  }

  start(): void {
    this.#response.setTimeout(this.#milliseconds);
  }

  stop(): void {
    this.#response.setTimeout(0);
  }
}

// Server-sent events on a raw response. `send` never waits: while the socket is full, `blocked` is true and the caller
// holds its output back until `onDrain`. A reader that takes nothing for `stallTimeout` seconds is cut off.

export const DONE = "data: [DONE]\n\n";

/** One event with a name, as dialects that have several kinds of events send them. */
export function namedEvent(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}

export interface EventStreamOptions {
  headers: Readonly<Record<string, string | number | string[] | undefined>>;
  /** Seconds. */
  stallTimeout: number;
  /** Called when the socket takes more again. */
  onDrain: () => void;
}

export class EventStream {
  readonly #response: ServerResponse;
  readonly #reader: ReaderClock;
  #blocked = false;
  #cutOff = false;

  /** Sends the headers at once. */
  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response;
    this.#reader = new ReaderClock(response, options.stallTimeout * 1000, () => this.cut());
    response.on("drain", () => {
      this.#blocked = false;
      if (!response.writableEnded) this.#reader.stop();
      options.onDrain();
    });
    response.writeHead(200, {
      ...options.headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  /** Bytes that the socket has not taken. */
  get waiting(): number {
    return this.#response.writableLength;
  }

  /** The connection was closed because its reader was too slow. */
  get cutOff(): boolean {
    return this.#cutOff;
  }

  /** `events`: complete blocks, each with its empty line. Nothing happens once the connection is gone or the stream has ended. */
  send(events: string): void {
    if (events === "" || !this.#open || this.#response.write(events) || this.#blocked) return;
    this.#blocked = true;
    this.#reader.start(); // once: what is written while it runs would start it anew
  }

  /** Keeps a quiet connection alive. One that is full needs no such help. */
  comment(text: string): void {
    if (!this.#blocked) this.send(`: ${text}\n\n`);
  }

  /** The last events; the connection is kept for the client's next request. */
  end(events: string): void {
    if (this.#open) {
      this.#reader.start();
      this.#response.end(events);
    }
  }

  cut(): void {
    this.#cutOff = true;
    this.#response.destroy();
  }

  get #open(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }
}

// Streams of server-sent events that go on until the client leaves, the server stops, or the client may not read them any
// more. A comment every 15 seconds keeps proxies from closing a quiet one.

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

  /** Takes the reply over. `onDrain`: a slow reader takes more again; `onClose`: it is gone, or the stream has ended. */
  open(reply: FastifyReply, onDrain: () => void, onClose: () => void = () => {}): EventStream {
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
      onClose();
    });
    return stream;
  }

  #each(work: (stream: EventStream) => void): void {
    for (const stream of this.#open) work(stream);
  }
}
