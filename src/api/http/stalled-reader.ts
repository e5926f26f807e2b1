// Ends responses whose client does not take them: a whole reply lies in memory until it is read. Streams of events have
// their own rules (sse.ts).
import type { ServerResponse } from "node:http";

const SHORTEST_MS = 1000;

/**
 * Ends the response once nothing of it has left for `seconds`, or up to twice as long; call it when the reply is about to
 * be written. The socket's own clock is used because it alone knows what was taken of a large write: `bytesWritten` counts
 * all of it at once.
 */
export function cutStalledReader(response: ServerResponse, seconds: number): void {
  // One that waits behind others on its connection gets its clock with the connection.
  response.setTimeout(Math.max(SHORTEST_MS, seconds * 1000), () => response.destroy());
  // Before the server's own listener, which starts the clock of an idle connection: this one must not run on for the
  // next response, which may take long to compute.
  response.prependOnceListener("finish", () => response.socket?.setTimeout(0));
}
