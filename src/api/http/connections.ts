// Bounds the open connections. At the limit, the one that has been idle for longest makes room: between two requests, in
// a header, or in a body without a token. A connection with a request in flight is never closed for another.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export class Connections {
  readonly #most: number;
  #open = 0;
  /** The one that has been idle for longest comes first. */
  readonly #idle = new Set<Socket>();
  /** Requests in flight on each connection: a client may send several at once. */
  readonly #inFlight = new Map<Socket, number>();

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on("connection", (socket: Socket) => this.#opened(socket));
  }

  /** The connection is in use until the reply is complete. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (socket.destroyed) return;
    this.#idle.delete(socket);
    this.#inFlight.set(socket, (this.#inFlight.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = (this.#inFlight.get(socket) ?? 1) - 1;
      if (left > 0) return this.#inFlight.set(socket, left);
      this.#inFlight.delete(socket);
      if (!socket.destroyed) this.#idle.add(socket);
    });
  }

  #opened(socket: Socket): void {
    this.#open++;
    this.#idle.add(socket);
    socket.once("close", () => {
      this.#open--;
      this.#idle.delete(socket);
      this.#inFlight.delete(socket);
    });
    if (this.#open <= this.#most) return;
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest); // closing takes a moment
      return void oldest.destroy();
    }
  }
}
