// A TCP proxy in front of a server whose faults a test controls. It refuses connections, delays bytes, and cuts a connection
// where an observer of its bytes says so.

import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What goes on to the other side, and whether the connection is cut after that. */
export interface Passage {
  bytes: Buffer;
  cut: boolean;
}

/** Sees the bytes of one connection, as they come. */
export interface Observer {
  toServer(bytes: Buffer): Passage;
  toClient(bytes: Buffer): Passage;
}

export class FaultProxy {
  /** New connections are closed at once. */
  refuse = false;
  /** Milliseconds that all bytes wait, in both directions. */
  delay = 0;
  /** How many connections observers cut. */
  cuts = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: NetConnectOpts, observe: () => Observer) {
    this.#server = createServer((client) => {
      if (this.refuse) client.destroy();
      else this.#join(client, connect(target), observe());
    });
  }

  /** `observe` is called for every connection. */
  static async start(target: NetConnectOpts, observe: () => Observer): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, observe);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts the connections that are open now. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket, observer: Observer): void {
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    this.#forward(client, server, (bytes) => observer.toServer(bytes));
    this.#forward(server, client, (bytes) => observer.toClient(bytes));
  }

  #forward(from: Socket, to: Socket, observe: (bytes: Buffer) => Passage): void {
    let last = Promise.resolve();
    from.on("data", (chunk) => {
      last = last.then(async () => {
        if (this.delay > 0) await sleep(this.delay);
        if (to.destroyed) return;
        const { bytes, cut } = observe(chunk);
        if (!cut) {
          to.write(bytes);
          return;
        }
        this.cuts++;
        // What was written before still arrives.
        to.end(bytes);
        from.destroy();
      });
    });
  }
}
