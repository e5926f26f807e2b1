import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it } from "vitest";
import { EventStream } from "./streams.ts";

/** A stream whose client reads nothing. */
async function stalled(stallTimeout: number, drive: (stream: EventStream, response: ServerResponse) => void) {
  const server = createServer().listen(0);
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
  const stream = new EventStream(response, { headers: {}, stallTimeout, onDrain() {} });
  const closed = once(response, "close");
  drive(stream, response);
  await closed;
  socket.destroy();
  server.close();
  return stream;
}

const large = `data: ${"x".repeat(20_000_000)}\n\n`;

it.each([0, 0.2])("cuts off a reader that takes nothing for %s s", async (stallTimeout) => {
  const stream = await stalled(stallTimeout, (stream) => {
    stream.send(large);
    expect(stream.blocked).toBe(true);
  });
  expect(stream.cutOff).toBe(true);
});

it("cuts off a stalled reader even while more is sent", async () => {
  const stream = await stalled(0.5, (stream, response) => {
    stream.send(large);
    const more = setInterval(() => stream.send(": more\n\n"), 50);
    response.on("close", () => clearInterval(more));
  });
  expect(stream.cutOff).toBe(true);
});

it("cuts off a reader that does not take the end", async () => {
  const stream = await stalled(0.2, (stream) => stream.end(large));
  expect(stream.cutOff).toBe(true);
});

it("sends nothing after the end", async () => {
  const server = createServer((_request, response) => {
    const stream = new EventStream(response, { headers: {}, stallTimeout: 60, onDrain() {} });
    stream.send("data: 1\n\n");
    stream.end("data: 2\n\n");
    stream.send("data: 3\n\n");
    stream.end("data: 4\n\n");
  }).listen(0);
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await response.text()).toBe("data: 1\n\ndata: 2\n\n");
  server.close();
});
