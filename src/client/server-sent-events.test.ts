import { describe, expect, it } from "vitest";
import { type ServerSentEvent, serverSentEvents } from "./server-sent-events.ts";

const TEXT = [
  ': comment\n\ndata: {"a":"ü"}\n\n',
  "id: 7\nevent: job\r\ndata:one\r\ndata: two\r\n\r\n",
  "event: nothing\n\ndata:[DONE]\n\ndata: cut off",
].join("");

async function all(body: Parameters<typeof serverSentEvents>[0]): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  for await (const event of serverSentEvents(body)) events.push(event);
  return events;
}

describe("server-sent events", () => {
  const bytes = new TextEncoder().encode(TEXT);

  it.each([1, 2, 7, 1000])("are found when the network sends %i bytes at a time", async (size) => {
    const pieces = (async function* () {
      for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
    })();
    expect(await all(pieces)).toEqual([
      { event: "message", id: null, data: '{"a":"ü"}' },
      { event: "job", id: "7", data: "one\ntwo" },
      { event: "message", id: null, data: "[DONE]" },
    ]);
  });

  it("are read from a stream that cannot be iterated, and the stream is cancelled when the reader leaves", async () => {
    let cancelled = false;
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes),
      cancel: () => {
        cancelled = true;
      },
    });
    const stream = { getReader: () => source.getReader() } as ReadableStream<Uint8Array>;
    for await (const { id } of serverSentEvents(stream)) if (id === "7") break;
    expect(cancelled).toBe(true);
  });
});
