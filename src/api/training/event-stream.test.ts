import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyReply } from "fastify";
import { expect, it, vi } from "vitest";
import { ServiceError } from "../../errors.ts";
import { createLog } from "../../observe/log.ts";
import type { JobEvent } from "../../store/event-table.ts";
import { streamEvents } from "./event-stream.ts";

it("ends when the job is deleted before its reader has seen the end", async () => {
  const event = { seq: 1, id: "e1", type: "training_started", data: {}, createdAt: "" };
  let onEvent: (event: JobEvent) => void = () => {};
  let gone = false;
  const jobs = {
    events(_id: string, after: string | null) {
      if (gone) throw new ServiceError("unknown_training_job", "There is no training job.");
      return after === null ? [event] : [];
    },
    watch(_id: string, listener: typeof onEvent) {
      onEvent = listener;
      return () => {};
    },
  };
  const server = createServer((_request, raw) => {
    const parts = { jobs, log: createLog({ level: "error", format: "text" }), stallTimeout: 60 };
    streamEvents({ raw, getHeaders: () => ({}) } as unknown as FastifyReply, parts, "j", null);
  }).listen(0);
  try {
    await once(server, "listening");
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    gone = true;
    onEvent(event);
    expect(await response.text()).toContain("id: e1");
  } finally {
    server.close();
  }
});

it("loses its reader, and nothing else, when the events cannot be read", async () => {
  const event = { seq: 1, id: "e1", type: "training_started", data: {}, createdAt: "" };
  let follow: (event: JobEvent) => void = () => {};
  let broken = false;
  const jobs = {
    events(_id: string, after: string | null) {
      if (broken) throw new Error("disk I/O error");
      return after === null ? [event] : [];
    },
    watch(_id: string, listener: typeof follow) {
      follow = listener;
      return () => {};
    },
  };
  const log = createLog({ level: "error", format: "text" });
  const logged = vi.spyOn(log, "error").mockImplementation(() => {});
  const server = createServer((_request, raw) => {
    const parts = { jobs, log, stallTimeout: 60 };
    streamEvents({ raw, getHeaders: () => ({}) } as unknown as FastifyReply, parts, "j", null);
  }).listen(0);
  try {
    await once(server, "listening");
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    broken = true;
    follow(event);
    await expect(response.text()).rejects.toThrow();
    expect(logged).toHaveBeenCalledOnce();
  } finally {
    server.close();
  }
});
