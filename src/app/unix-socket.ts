// The path of a Unix socket before a server listens on it. A server that was killed leaves its socket behind, which
// nobody answers: that one is removed. One that is answered belongs to a running server and is left alone.
import { existsSync, lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { OperatorError } from "../errors/operator-error.ts";

/** What every system can hold (macOS has the least). Longer paths would be cut silently. */
const LONGEST_PATH = 103;

/** Makes sure that a server can listen on `path`, or says why not. */
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

/** "connected", or the system's code for why not. */
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
