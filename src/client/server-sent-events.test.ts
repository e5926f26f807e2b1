import { expect, it } from "vitest";
import { serverSentEvents } from "./server-sent-events.ts";

it("finds events however the network splits them", async () => {
  const bytes = new TextEncoder().encode(': comment\ndata: {"a":"ü"}\n\ndata:[DONE]\n\n');
  for (const size of [1, 2, 7, 100]) {
    const pieces = (async function* () {
      for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
    })();
    const events: string[] = [];
    for await (const event of serverSentEvents(pieces)) {
      events.push(event);
    }
    expect(events).toEqual(['{"a":"ü"}', "[DONE]"]);
  }
});
