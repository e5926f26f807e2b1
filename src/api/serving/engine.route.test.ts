import { EventEmitter } from "node:events";
import type { FastifyReply } from "fastify";
import { expect, it } from "vitest";
import { shared } from "../../../test/support/shared-server.ts";
import { startTestServer } from "../../../test/support/test-server.ts";
import type { Principal } from "../http/auth.ts";
import { follow } from "./engine.route.ts";
import type { Reading } from "./engine-monitor.ts";

const server = shared(() => startTestServer({ config: { streamBufferBytes: 4096 } }));

it("cuts off a reader for whom more waits than a stream may hold", () => {
  let isCut = false;
  const stream = {
    blocked: true,
    send() {},
    cut() {
      isCut = true;
    },
  };
  let tell: (reading: Reading) => void = () => {};
  const monitor = {
    watch(watcher: typeof tell) {
      tell = watcher;
      return () => {};
    },
  };
  const caller = { id: "1", scopes: new Set() } as unknown as Principal;
  const reply = { raw: new EventEmitter() } as unknown as FastifyReply;
  follow({ service: server.service, monitor, streams: { open: () => stream } }, reply, caller);
  const stats = server.service.engine.stats();
  const point = { at: 0, running: 0, waiting: 0, cache: 0 } as Reading["point"];
  let told = 0;
  while (!isCut && told < 1000) {
    tell({ stats, point, steps: [] });
    told++;
  }
  expect(isCut).toBe(true);
  expect(told).toBeGreaterThan(10);
});
