import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyReply } from "fastify";
import { expect, it, vi } from "vitest";
import { createLog } from "../../observe/log.ts";
import type { JobEvent } from "../../store/event-table.ts";
import { TrainingError } from "../../training/training-error.ts";
import { streamEvents } from "./event-stream.ts";

const log = createLog({ level: "error", format: "text" });

/** The reply to a reader of a job with one event, whose events can no longer be read, for this reason, when it is told of the next. */
async function readUntil(failure: Error, check: (response: Response) => Promise<void>): Promise<void> {
  const event = { seq: 1, id: "e1", type: "training_started", data: {}, createdAt: "" };
  let follow: (event: JobEvent) => void = () => {};
  let broken = false;
  const jobs = {
    async events(_id: string, after: string | null) {
      if (broken) throw failure;
      return after === null ? [event] : [];
    },
    watch(_id: string, listener: typeof follow) {
      follow = listener;
      return () => {};
    },
  };
  const server = createServer((_request, raw) => {
    const reply = { raw, getHeaders: () => ({}) } as unknown as FastifyReply;
    streamEvents(reply, { jobs, log, stallTimeout: 60 }, "j", null);
  }).listen(0);
  try {
    await once(server, "listening");
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    broken = true;
    follow(event);
    await check(response);
  } finally {
    server.close();
  }
}

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
