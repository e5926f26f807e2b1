import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { cutStalledReader } from "./streams.ts";

const SIZE = 50_000_000;

it.each([
  ["nothing", false],
  ["everything", true],
])("handles a client that reads %s of a reply larger than the socket buffers", async (_what, reads) => {
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
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  await ended;
  if (!reads) read();
  await once(socket, "close");
  expect(received >= SIZE).toBe(reads);
  server.close();
});

it("sends the whole reply to a client that reads slowly", async () => {
  const server = createServer((_request, response) => {
    cutStalledReader(response, 2);
    response.end(Buffer.alloc(SIZE));
  }).listen(0);
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  const start = performance.now();
  let received = 0;
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    received += bytes.length;
    const due = start + (received / SIZE) * 5000;
    await sleep(due - performance.now());
  }
  expect(performance.now() - start).toBeGreaterThan(4500);
  expect(received).toBeGreaterThan(SIZE);
  server.close();
});

it("restarts the timeout for the next reply, and closes the connection when it is idle", async () => {
  const server = createServer({ keepAliveTimeout: 100 }, ({ url }, response) => {
    setTimeout(
      () => {
        cutStalledReader(response, 1);
        response.end(url);
      },
      url === "/second" ? 2500 : 0,
    );
  }).listen(0);
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  for (const path of ["/first", "/second"]) socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  let text = "";
  for await (const bytes of socket as AsyncIterable<Buffer>) text += bytes.toString("latin1");
  expect(text).toContain("/first");
  expect(text).toContain("/second");
  server.close();
});
