// Prepares the path of a Unix socket. A killed server leaves its socket behind, and nobody answers on it: that one is
// removed. A socket that answers belongs to a running server and stays.
import { existsSync, lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { OperatorError } from "../errors/faults.ts";

/** The longest path in bytes that every system takes (macOS takes the fewest). Longer ones would be cut silently. */
const LONGEST_PATH = 103;

/** Makes sure that a server can listen on `path`, or throws the reason why not. */
export async function claimSocketPath(path: string): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    throw new OperatorError(`cannot listen on ${path}: a socket's path has at most ${LONGEST_PATH} bytes`);
  }
  if (!existsSync(dirname(path))) throw new OperatorError(`cannot listen on ${path}: its folder does not exist`);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new OperatorError(`cannot listen on ${path}: it exists and is not a socket`);
  const answer = await knock(path);
  if (answer === "connected") {
    throw new OperatorError(
      `cannot listen on ${path}: another server is listening there; stop it or choose another --uds`,
    );
  }
  if (answer !== "ECONNREFUSED") {
    throw new OperatorError(`cannot listen on ${path}: a socket is there that cannot be checked (${answer})`);
  }
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
