import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { LogprobMemory, logprobLimits } from "./logprob-memory.ts";

const response = (closed = false) => Object.assign(new EventEmitter(), { closed }) as unknown as ServerResponse;
const memory = () => new LogprobMemory({ all: 10_000_000, each: 6_000_000 });
const entry = (token: string) => ({ token, logprob: -1, bytes: [...Buffer.from(token)], top_logprobs: [] });

describe("LogprobMemory", () => {
  it("bounds what one client holds, and what all do, until their responses close", () => {
    const held = memory();
    const first = response();
    held.hold("a", 50_000, first);
    expect(() => held.hold("a", 50_000, response())).toThrow(/of your replies in progress/);
    held.hold("b", 50_000, response());
    expect(() => held.hold("c", 1, response())).toThrow(/of all replies in progress/);
    first.emit("close");
    expect(held.taken).toBe(5_000_000);
    held.hold("c", 50_000, response());
  });

  it("takes more room for tokens that are longer than expected, and gives all of it back", () => {
    const held = memory();
    const reply = response();
    const room = held.hold("a", 1, reply);
    room.add(Array.from({ length: 100 }, () => entry("x".repeat(1000))));
    expect(held.taken).toBeGreaterThan(500_000);
    expect(() => {
      for (;;) room.add([entry("x".repeat(100_000))]);
    }).toThrow(/of your replies/);
    reply.emit("close");
    expect(held.taken).toBe(0);
    room.add([entry("x".repeat(100_000))]);
    expect(held.taken).toBe(0);
    held.hold("a", 50_000, response(true));
    expect(held.taken).toBe(0);
  });

  it("follows what a stream holds back, and keeps the room that it began with", () => {
    const held = memory();
    const stream = response();
    const room = held.hold("a", 1000, stream);
    expect(room.keep(5_000_000)).toBe(true);
    expect(held.taken).toBeGreaterThan(4_000_000);
    expect(room.keep(10)).toBe(true);
    expect(held.taken).toBe(100_000);
    expect(room.keep(7_000_000)).toBe(false);
    stream.emit("close");
    expect(held.taken).toBe(0);
    expect(room.keep(5_000_000)).toBe(true);
    expect(held.taken).toBe(0);
  });

  it("has room for one reply at the limit of a reply, however small the heap is", () => {
    expect(logprobLimits(2 ** 28)).toEqual({ all: 200_000_000, each: 200_000_000 });
    expect(logprobLimits(2 ** 32)).toEqual({ all: 2 ** 30, each: 2 ** 29 });
  });
});
