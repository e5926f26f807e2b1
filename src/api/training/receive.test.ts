import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterEach, expect, it } from "vitest";
import { readSubmission } from "./receive.ts";

const server = createServer();
afterEach(() => {
  server.close();
});

it.each([
  ["plain", "", Buffer.from('{"data": [1, 2')],
  ["packed", "Content-Encoding: gzip\r\n", gzipSync(`{"data": [${"1,".repeat(10_000)}1]}`).subarray(0, 20)],
])("does not report a server error when a client leaves in the middle of its %s body", async (_what, header, sent) => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${header}Content-Length: 1000\r\n\r\n`);
  socket.write(sent);
  const [request] = (await once(server, "request")) as [IncomingMessage];
  const reading = readSubmission(request, { streamed: { data: null }, maxBytes: 1e6, onItem() {} });
  socket.destroy();
  await expect(reading).rejects.toMatchObject({ status: 400, message: "The connection ended before the body did." });
});

it("does not report a server error when a client leaves after its packed body was refused", async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n");
  socket.write(gzipSync("]"));
  const [request] = (await once(server, "request")) as [IncomingMessage];
  const reading = readSubmission(request, { streamed: { data: null }, maxBytes: 1e6, onItem() {} });
  await expect(reading).rejects.toMatchObject({ status: 422 });
  const uncaught: unknown[] = [];
  const listen = (error: unknown) => uncaught.push(error);
  process.on("uncaughtException", listen);
  const closed = new Promise((resolve) => request.once("close", resolve));
  socket.destroy();
  await closed;
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off("uncaughtException", listen);
  expect(uncaught).toEqual([]);
});

it("lets the event loop run between chunks, however fast they arrive", async () => {
  const items = Array.from({ length: 20 }, (_, i) => i);
  const chunks = ['{"data": [', ...items.map((i) => (i === 0 ? `${i}` : `,${i}`)), "]}"];
  const request = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  let turn = 0;
  const count = (): void => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const seen: number[] = [];
  try {
    await readSubmission(Object.assign(request, { headers: {} }) as unknown as IncomingMessage, {
      streamed: { data: null },
      maxBytes: 1e6,
      onItem: () => void seen.push(turn),
    });
  } finally {
    clearImmediate(counting);
  }
  expect(seen).toHaveLength(items.length);
  expect(new Set(seen).size).toBe(items.length);
});
