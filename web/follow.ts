// Follows a stream of the server for as long as somebody looks: it connects again when the connection breaks, and goes on after
// the last event it has seen. A tab in the background lets go of its stream, because a browser keeps only six connections to
// a server in all its tabs.
import { ApiError, isConnectionFault, sleep } from "../src/client/http.ts";
import { type ServerSentEvent, serverSentEvents } from "../src/client/server-sent-events.ts";
import { call, watched } from "./server.ts";

const WAIT_MS = 1_000;

/**
 * `path` is below /v1. Ends when the signal or the server says so; throws what the server says against the request. `begin`
 * runs before every connection, for streams that cannot tell what was missed.
 */
export async function follow(
  path: string,
  onEvent: (event: ServerSentEvent) => void,
  signal: AbortSignal,
  begin: (signal: AbortSignal) => Promise<void> = async () => {},
): Promise<void> {
  let last: string | null = null;
  while (!signal.aborted) {
    if (document.hidden) await visibilityChange();
    const hidden = new AbortController();
    void visibilityChange().then(() => hidden.abort());
    const either = AbortSignal.any([signal, hidden.signal]);
    try {
      await begin(either);
      const headers = { accept: "text/event-stream", ...(last === null ? {} : { "last-event-id": last }) };
      const response = await call("GET", path, { headers, signal: either });
      if (response.body === null) return; // there will be no more
      const events = serverSentEvents(response.body);
      for (;;) {
        const { done, value } = await watched(events.next());
        if (done) break;
        if (value.event === "error") break; // the next request says the same
        last = value.id ?? last;
        onEvent(value);
      }
    } catch (error) {
      if (either.aborted) continue;
      if (!isConnectionFault(error) && !(error instanceof ApiError && error.status >= 500)) throw error;
    }
    await sleep(WAIT_MS, signal).catch(() => {}); // ended by the signal
  }
}

function visibilityChange(): Promise<unknown> {
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
