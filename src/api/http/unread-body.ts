// A reply may be complete before the body of its request is: the path is unknown, the token is missing, the body is too
// large. The rest is read and thrown away, because a client that is still sending would see a broken connection instead
// of the answer. For callers without a token, that ends soon.
import type { IncomingMessage } from "node:http";

const MOST_BYTES = 1024 * 1024;
const LONGEST_MS = 5_000;

/** Closes the connection unless the rest of the body is short; call it when the reply is about to be written. */
export function limitUnread(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  const end = socket.bytesRead + MOST_BYTES;
  const timer = setTimeout(() => socket.destroy(), LONGEST_MS).unref();
  // without a listener Node would throw the rest away by itself, however much it is
  request.on("data", () => {
    if (socket.bytesRead > end) socket.destroy();
  });
  request.once("close", () => clearTimeout(timer));
}
