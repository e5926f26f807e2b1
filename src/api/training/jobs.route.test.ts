import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, vi } from "vitest";
import { createLog } from "../../observe/log.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import { TrainingError } from "../../training/training-error.ts";
import { EventStream } from "../http/streams.ts";
import { streamEvents } from "./jobs.route.ts";

const log = createLog({ level: "error", format: "text" });

const eventOf = (seq: number, type = "gradient_step"): JobEvent => ({
  id: `e${seq}`,
  type,
  data: {},
  createdAt: "",
});

type Events = (after: string | null, limit: number) => JobEvent[];

/** The reply to a reader of a job with these events, and what tells it of new ones. */
async function read(events: Events, check: (response: Response, tell: (event: JobEvent) => void) => Promise<void>) {
  let tell: (event: JobEvent) => void = () => {};
  const jobs = {
    events: async (_id: string, after: string | null, limit: number) => events(after, limit),
    watch(_id: string, listener: typeof tell) {
      tell = listener;
      return () => {};
    },
  };
  const server = createServer((_request, raw) => {
    const open = (onDrain: () => void, onClose: () => void) => {
      raw.on("close", onClose);
      return new EventStream(raw, { headers: {}, stallTimeout: 60, onDrain });
    };
    streamEvents(open, { jobs, log }, "j", null);
  }).listen(0);
  try {
    await once(server, "listening");
    await check(await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), (event) => tell(event));
  } finally {
    server.close();
  }
}

/** The reply to a reader of a job with one event, whose events can no longer be read, for this reason, when it is told of the next. */
function readUntil(failure: Error, check: (response: Response) => Promise<void>): Promise<void> {
  let broken = false;
  const events: Events = (after) => {
    if (broken) throw failure;
    return after === null ? [eventOf(1)] : [];
  };
  return read(events, async (response, tell) => {
    broken = true;
    tell(eventOf(2));
    await check(response);
  });
}

it("tells every event in order, and reads the table once for each piece of news", async () => {
  const table = Array.from({ length: 1001 }, (_, i) => eventOf(i + 1));
  let reads = 0;
  const events: Events = (after, limit) => {
    reads += 1;
    const from = after === null ? 0 : table.findIndex(({ id }) => id === after) + 1;
    return table.slice(from, from + limit);
  };
  await read(events, async (response, tell) => {
    let text = "";
    const decoder = new TextDecoder();
    const ids = () => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id);
    for await (const bytes of response.body!) {
      text += decoder.decode(bytes, { stream: true });
      if (ids().length < table.length || table.length === 1006) continue;
      if (table.length === 1001) expect(reads).toBe(3);
      const next = eventOf(table.length + 1, table.length === 1005 ? "training_ended" : "gradient_step");
      table.push(next);
      tell(next);
    }
    expect(ids()).toEqual(table.map(({ id }) => id));
    expect(reads).toBe(3 + 5);
  });
});

it("ends when the job is deleted before its reader saw the end", () =>
  readUntil(new TrainingError("unknown_job", { id: "j" }), async (response) => {
    expect(await response.text()).toContain("id: e1");
  }));

it("disconnects only its reader when the events cannot be read", async () => {
  const logged = vi.spyOn(log, "error").mockImplementation(() => {});
  await readUntil(new Error("disk I/O error"), async (response) => {
    await expect(response.text()).rejects.toThrow();
    expect(logged).toHaveBeenCalledOnce();
  });
});
