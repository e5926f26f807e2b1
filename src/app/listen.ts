// Where a server listens: a host and port, or a Unix socket. Explains in words why an address cannot be used.
import { existsSync, lstatSync, unlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer as createSocket } from "node:net";
import { dirname } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";

// Prepares the path of a Unix socket. A killed server leaves its socket behind, and nobody answers on it: that one is
// removed. A socket that answers belongs to a running server and stays.

/** The longest path in bytes that every system takes (macOS takes the fewest). Longer ones would be cut silently. */
const LONGEST_PATH = 103;

/** Makes sure that a server can listen on `path`, or throws the reason why not. */
async function claimSocketPath(path: string): Promise<void> {
  const unusable = (why: string) => new OperatorError(`cannot listen on ${path}: ${why}`);
  if (Buffer.byteLength(path) > LONGEST_PATH) throw unusable(`a socket's path has at most ${LONGEST_PATH} bytes`);
  if (!existsSync(dirname(path))) throw unusable("its folder does not exist");
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw unusable("it exists and is not a socket");
  const answer = await knock(path);
  if (answer === "connected") throw unusable("another server is listening there; stop it or choose another --uds");
  if (answer !== "ECONNREFUSED") throw unusable(`a socket is there that cannot be checked (${answer})`);
  unlinkSync(path);
}

/** Resolves to "connected" or to the system's error code. */
function knock(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.on("connect", () => {
      socket.destroy();
      resolve("connected");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

/** Connections that may wait to be accepted while the main thread works. The system may allow fewer. */
const BACKLOG = 4096;

/** Listens for a moment, so that a taken address is reported before minutes of reading weights. */
export async function tryAddress(config: Config): Promise<void> {
  if (config.uds !== null) return claimSocketPath(config.uds);
  const socket = createSocket();
  await explained(config, (address) => {
    return new Promise((resolve, reject) => socket.once("error", reject).listen(address, () => socket.close(resolve)));
  });
}

export async function listen(app: FastifyInstance, config: Config): Promise<void> {
  if (config.uds !== null) await claimSocketPath(config.uds);
  await explained(config, (address) => app.listen({ ...address, backlog: BACKLOG }));
}

type Address = { host: string; port: number } | { path: string };

/** Turns the system's error codes for an address into an OperatorError. */
async function explained(config: Config, work: (address: Address) => Promise<unknown>): Promise<void> {
  try {
    await work(config.uds === null ? { host: config.host, port: config.port } : { path: config.uds });
  } catch (error) {
    const reasons: Record<string, string> = {
      EADDRINUSE: `it is in use; choose another ${config.uds === null ? "--port, or 0 for a free one" : "--uds"}`,
      EACCES: "that is not permitted",
      EADDRNOTAVAIL: "this machine has no such address",
      ENOTFOUND: "there is no such host",
    };
    const reason = reasons[(error as NodeJS.ErrnoException).code ?? ""];
    if (reason === undefined) throw error;
    const address = config.uds ?? `${config.host}:${config.port}`;
    throw new OperatorError(`cannot listen on ${address}: ${reason}`, { cause: error });
  }
}

/** The address as clients use it. */
export function addressOf(app: FastifyInstance, { uds, host }: Pick<Config, "uds" | "host">): string {
  if (uds !== null) return `unix:${uds}`;
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The address as programs on this machine use it: "every address" is none to connect to. */
export function localAddressOf(app: FastifyInstance, { uds, host }: Config): string {
  const here = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return addressOf(app, { uds, host: here });
}
