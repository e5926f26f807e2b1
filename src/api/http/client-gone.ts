// Tells when the client of a response has left before the response was complete, so that work for it can stop.
import type { ServerResponse } from "node:http";

export function clientGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) {
    gone.abort();
  }
  response.once("close", () => {
    if (!response.writableFinished) {
      gone.abort();
    }
  });
  return gone.signal;
}
