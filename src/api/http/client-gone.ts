// Notices that a client left before its response was complete, so that work for it can stop.
import type { IncomingMessage, ServerResponse } from "node:http";

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
