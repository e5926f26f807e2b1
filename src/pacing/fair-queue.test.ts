import { expect, it } from "vitest";
import { FairQueue, type FairQueueOptions } from "./fair-queue.ts";

const queueOf = (options: Partial<FairQueueOptions> = {}) =>
  new FairQueue<string>({ waitingPerOwner: 1000, ...options });

/** Runs everything that waits on one worker, each for `cost`, and returns the order. */
function order(queue: FairQueue<string>, cost: (item: string) => number = () => 1): string[] {
  const done: string[] = [];
  for (let turn = queue.take(); turn !== undefined; turn = queue.take()) {
    done.push(turn.item);
    turn.end(cost(turn.item));
  }
  return done;
}

it("runs the work of one owner in order", () => {
  const queue = queueOf();
  for (const item of ["a1", "a2", "a3"]) queue.add("a", item);
  expect(order(queue)).toEqual(["a1", "a2", "a3"]);
  expect(queue.take()).toBeUndefined();
});

it("lets another owner's work go next, however much of the first one's waits", () => {
  const queue = queueOf();
  for (let i = 0; i < 1000; i++) queue.add("a", `a${i}`);
  const running = queue.take()!;
  queue.add("b", "b0");
  running.end(1);
  expect(queue.take()!.item).toBe("b0");
});

it("gives owners the same amount of work, not the same number of turns", () => {
  const queue = queueOf();
  for (let i = 0; i < 20; i++) {
    queue.add("dear", "dear");
    queue.add("cheap", "cheap");
  }
  const first = order(queue, (item) => (item === "dear" ? 9 : 1)).slice(0, 20);
  expect(first.filter((item) => item === "cheap").length).toBeGreaterThanOrEqual(17);
});

it("prefers the owner with less at work, whose cost nobody knows yet", () => {
  const queue = queueOf();
  queue.add("a", "a0");
  queue.take();
  queue.add("a", "a1");
  queue.add("b", "b0");
  expect(queue.take()!.item).toBe("b0");
});

it("keeps what an owner has used while it asks for one thing at a time", () => {
  const queue = queueOf();
  queue.add("a", "a0");
  queue.take()!.end(50);
  queue.add("b", "b0");
  queue.add("b", "b1");
  queue.take()!.end(10);
  queue.add("a", "a1");
  expect(order(queue)).toEqual(["b1", "a1"]);
});

it("gives an owner who was away no credit for it", () => {
  const queue = queueOf();
  for (let i = 0; i < 10; i++) {
    queue.add("a", `a${i}`);
    queue.take()!.end(100);
  }
  for (let i = 0; i < 4; i++) {
    queue.add("a", "a");
    queue.add("b", "b");
  }
  expect(order(queue, () => 100).slice(0, 4)).toEqual(["b", "a", "b", "a"]);
});

it("bounds what one owner has waiting, and nobody else's", () => {
  const queue = queueOf({ waitingPerOwner: 2 });
  expect(["a0", "a1", "a2"].map((item) => queue.add("a", item))).toEqual([true, true, false]);
  expect(queue.add("b", "b0")).toBe(true);
  queue.take();
  expect(queue.add("a", "a3")).toBe(true);
});

it("bounds what one owner has running", () => {
  const queue = queueOf({ runningPerOwner: 1 });
  queue.add("a", "a0");
  queue.add("a", "a1");
  const first = queue.take()!;
  expect(queue.take()).toBeUndefined();
  first.end(1);
  expect(queue.take()!.item).toBe("a1");
});

it("forgets work that is removed, but not work that runs", () => {
  const queue = queueOf();
  for (const item of ["a0", "a1", "a2"]) queue.add("a", item);
  queue.take();
  expect(queue.remove("a", "a0")).toBe(false);
  expect(queue.remove("a", "a1")).toBe(true);
  expect(queue.remove("b", "a2")).toBe(false);
  expect(queue.removeAll()).toEqual(["a2"]);
  expect(queue.take()).toBeUndefined();
});
