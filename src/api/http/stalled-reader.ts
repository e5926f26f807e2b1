// Notices that a client does not read its response. Until it is read, a reply takes up memory.
import type { ServerResponse } from "node:http";

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
export class ReaderClock {
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
