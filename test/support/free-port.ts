// A port for a server that a test starts in another process and must know the address of. It is below those that systems
// give to connections and to servers that ask for any port, so nobody takes it before that server does.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const PORTS = [10_000, 30_000] as const;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...PORTS);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
