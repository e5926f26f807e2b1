// Tells when the client of a response has left before the response was complete, so that work for it can stop.
import type { ServerResponse } from "node:http";

export function clientGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const { socket } = response.req;
  const leave = () => {
    if (!response.writableFinished) {
      gone.abort();
    }
  };
  if (response.destroyed || socket.destroyed) {
    gone.abort();
  }
  response.once("close", () => {
    socket.off("close", leave);
    leave();
  });
  // A response that waits behind others on its connection does not hear of the connection's end itself. There may be many.
  socket.setMaxListeners(0);
  socket.once("close", leave);
  return gone.signal;
}
