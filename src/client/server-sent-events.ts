// Yields the events of a server-sent event stream, however the network splits it. An event that is cut off by the end of the
// stream is dropped, as the standard says.

export interface ServerSentEvent {
  /** "message" if the server names none. */
  event: string;
  /** For Last-Event-ID; null if the server gives none. */
  id: string | null;
  data: string;
}

type Bytes = AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

export async function* serverSentEvents(body: Bytes): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "message";
  let id: string | null = null;
  let data: string[] = [];
  for await (const bytes of piecesOf(body)) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop()!;
    for (const line of lines.map((text) => (text.endsWith("\r") ? text.slice(0, -1) : text))) {
      if (line === "") {
        if (data.length > 0) yield { event, id, data: data.join("\n") };
        [event, id, data] = ["message", null, []];
      } else if (line.startsWith("data:")) data.push(fieldValue(line));
      else if (line.startsWith("event:")) event = fieldValue(line);
      else if (line.startsWith("id:")) id = fieldValue(line);
    }
  }
}

/** What follows the colon, without one space. */
function fieldValue(line: string): string {
  const value = line.slice(line.indexOf(":") + 1);
  return value.startsWith(" ") ? value.slice(1) : value;
}

/** Safari cannot iterate a stream, so streams are read with a reader everywhere. */
async function* piecesOf(body: Bytes): AsyncGenerator<Uint8Array> {
  if (!("getReader" in body)) return yield* body;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {}); // the reader of the events left first
  }
}
