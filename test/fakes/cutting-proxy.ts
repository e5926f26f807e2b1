// A TCP proxy in front of a server that cuts connections in the middle of streams.
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CuttingProxy {
  /** Cut a connection after this many chunks of tokens; null: never. */
  cutAfter: number | null = null;
  /** How many connections were cut. */
  cuts = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((client) => this.#forward(client, connect(port, "127.0.0.1")));
  }

  /** `url`: the server behind it. */
  static async start(url: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(Number(new URL(url).port));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #forward(client: Socket, server: Socket): void {
    let chunks = 0;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on("data", (bytes) => {
      chunks = 0;
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      const { cutAfter } = this;
      for (const event of bytes.toString("latin1").split(/(?<=\n\n)/)) {
        if (event.includes('"token_ids":[')) chunks++;
        if (cutAfter !== null && chunks > cutAfter) {
          this.cuts++;
          // What was written before still arrives.
          client.end();
          server.destroy();
          return;
        }
        client.write(event, "latin1");
      }
    });
  }
}
