// Server-sent events on a raw response. `send` never waits: while the socket is full, `blocked` is true and the caller
// holds its output back until `onDrain`. A reader that takes nothing for `stallTimeout` seconds is cut off.
import type { ServerResponse } from "node:http";
import { ReaderClock } from "./stalled-reader.ts";

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
