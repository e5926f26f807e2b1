import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { ServiceError } from "../../errors/service-error.ts";
import { SharedRoom } from "./shared-room.ts";

const response = (closed = false) => Object.assign(new EventEmitter(), { closed }) as unknown as ServerResponse;

it("bounds what one client takes, and what all do, until their responses close", () => {
  const memory = new SharedRoom({ all: 10, each: 6 }, (whose, most) => {
    return new ServiceError("queue_full", `${whose} ${most}`);
  });
  const first = response();
  const held = memory.hold("a", first);
  held.reserve(4);
  held.reserve(2);
  expect(() => memory.hold("a", response()).reserve(1)).toThrow("your 6");
  memory.hold("b", response()).reserve(4);
  expect(() => memory.hold("c", response()).reserve(1)).toThrow("all 10");
  first.emit("close");
  expect(memory.taken).toBe(4);
  held.reserve(6);
  memory.hold("a", response(true)).reserve(6);
  expect(memory.taken).toBe(4);
  memory.hold("a", response()).reserve(6);
});
