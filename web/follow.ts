// Follows a stream of the server for as long as somebody looks: it connects again when the connection breaks, and goes on after
// the last event it has seen.
import { ApiError, isConnectionFault } from "../src/client/http.ts";
import { type ServerSentEvent, serverSentEvents } from "../src/client/server-sent-events.ts";
import { sleep } from "../src/client/sleep.ts";
import { call, watched } from "./server.ts";

const WAIT_MS = 1_000;

/** `path` is below /v1. Ends when the signal or the server says so; throws what the server says against the request. */
export async function follow(
  path: string,
  onEvent: (event: ServerSentEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  let last: string | null = null;
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream", ...(last === null ? {} : { "last-event-id": last }) };
      const response = await call("GET", path, { headers, signal });
      if (response.body === null) return; // there will be no more
      const events = serverSentEvents(response.body);
      for (;;) {
        const { done, value } = await watched(events.next());
        if (done) break;
        last = value.id ?? last;
        onEvent(value);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isConnectionFault(error) && !(error instanceof ApiError && error.status >= 500)) throw error;
    }
    await sleep(WAIT_MS, signal).catch(() => {}); // ended by the signal
  }
}
