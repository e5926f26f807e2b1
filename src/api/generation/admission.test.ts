import { describe, expect, it, vi } from "vitest";
import type { ServiceError } from "../../errors/service-error.ts";
import { Admission } from "./admission.ts";

const refusal = (work: () => unknown): ServiceError => {
  try {
    work();
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error("was admitted");
};

describe("Admission", () => {
  it("counts choices and frees each place once", () => {
    const door = new Admission({ slots: 2, queue: 1 });
    const leave = door.enter(2);
    door.enter(1);
    const full = refusal(() => door.enter(1));
    expect([full.code, full.retryAfter! >= 1 && full.retryAfter! <= 60]).toEqual(["queue_full", true]);
    leave();
    leave();
    expect(door.active).toBe(1);
    door.enter(2);
  });

  it("says when to come back: at the recent pace, but within a minute", () => {
    const door = new Admission({ slots: 2, queue: 998 });
    door.enter(900);
    // 10 and 500 choices too many, 2 at a time, a second each
    expect(refusal(() => door.enter(110)).retryAfter).toBe(5);
    expect(refusal(() => door.enter(600)).retryAfter).toBe(60);
  });

  it("learns the pace from how long choices kept their places", () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const door = new Admission({ slots: 1, queue: 0 });
    for (let at = 0; at < 50_000; at += 10_000) {
      now.mockReturnValue(at);
      const leave = door.enter(1);
      now.mockReturnValue(at + 10_000);
      leave();
    }
    door.enter(1);
    // from 1 s, five times a tenth of the way to 10 s: 4.7 s
    expect(refusal(() => door.enter(1)).retryAfter).toBe(5);
    now.mockRestore();
  });

  it("permanently refuses requests that could never fit", () => {
    expect(refusal(() => new Admission({ slots: 2, queue: 1 }).enter(4))).toMatchObject({
      code: "invalid_value",
      param: "n",
    });
  });

  it("admits no requests while draining, and is idle once the last one has ended", async () => {
    const door = new Admission({ slots: 2, queue: 0 });
    await door.idle();
    const leave = door.enter(1);
    door.drain();
    expect(refusal(() => door.enter(1)).status).toBe(503);
    let idle = false;
    const waiting = door.idle().then(() => {
      idle = true;
    });
    await Promise.resolve();
    expect(idle).toBe(false);
    leave();
    await waiting;
    expect(idle).toBe(true);
  });
});
