// Tells when the client of a response takes nothing of what lies ready for it: a reply lies in memory until it is read.
import type { ServerResponse } from "node:http";

const SHORTEST_MS = 1000;

/** Ends the response once its client stalls; call it when the reply is about to be written. */
export function cutStalledReader(response: ServerResponse, seconds: number): void {
  new ReaderClock(response, Math.max(SHORTEST_MS, seconds * 1000), () => response.destroy()).start();
}

/**
 * Runs `onStall` once nothing of the response has left for `milliseconds`, or up to twice as long, while it is started.
 * The socket's own clock is used because it alone knows what was taken of a large write: `bytesWritten` counts all of it
 * at once. A response that waits behind others on its connection gets its clock with the connection.
 */
export class ReaderClock {
  readonly #response: ServerResponse;
  readonly #milliseconds: number;

  constructor(response: ServerResponse, milliseconds: number, onStall: () => void) {
    this.#response = response;
    this.#milliseconds = Math.max(1, milliseconds); // 0 would be no clock at all
    response.on("timeout", onStall);
    // Before the server's own listener, which starts the clock of an idle connection: this one must not run on for the
    // next response, which may take long to compute.
    response.prependOnceListener("finish", () => this.stop());
  }

  start(): void {
    this.#response.setTimeout(this.#milliseconds);
  }

  stop(): void {
    this.#response.setTimeout(0);
  }
}
