import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it } from "vitest";
import { cutStalledReader } from "./stalled-reader.ts";

const SIZE = 50_000_000;

it.each([
  ["nothing", false],
  ["everything", true],
])("a client that reads %s of a reply too large for the buffers between", async (_what, reads) => {
  const server = createServer().listen(0);
  const ended = new Promise<void>((resolve) => {
    server.on("request", (_request, response) => {
      response.once("close", () => resolve());
      cutStalledReader(response, 0);
      response.end(Buffer.alloc(SIZE));
    });
  });
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  let received = 0;
  const read = () =>
    socket.on("data", (bytes) => {
      received += bytes.length;
    });
  if (reads) read();
  socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  await ended;
  if (!reads) read();
  await once(socket, "close");
  expect(received >= SIZE).toBe(reads);
  server.close();
});
