// Ends responses whose client does not take them: a whole reply lies in memory until it is read. Streams of events have
// their own rules (sse.ts).
import type { ServerResponse } from "node:http";

const SHORTEST_MS = 1000;

/** Looks once in `seconds`; call it when the reply is about to be written. */
export function cutStalledReader(response: ServerResponse, seconds: number): void {
  let taken: number | null = null;
  const timer = setInterval(
    () => {
      // null: it waits behind another response on the same connection.
      const written = response.socket?.bytesWritten ?? null;
      if (written !== null && written === taken) {
        response.destroy();
      }
      taken = written;
    },
    Math.max(SHORTEST_MS, seconds * 1000),
  );
  timer.unref();
  response.once("close", () => clearInterval(timer));
}
