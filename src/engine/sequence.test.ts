import { describe, expect, it } from "vitest";
import { IntList, type SequenceEvent, type SequenceState, transition } from "./sequence.ts";

describe("IntList", () => {
  it("shares the initial array until the first push and never writes to it", () => {
    const prompt = Int32Array.of(1, 2, 3);
    const a = new IntList(prompt);
    const b = new IntList(prompt);
    expect(a.view(0, 3).buffer).toBe(prompt.buffer);
    a.push(4);
    b.push(5);
    expect([...a.view(0, 4)]).toEqual([1, 2, 3, 4]);
    expect([...b.view(0, 4)]).toEqual([1, 2, 3, 5]);
    expect([...prompt]).toEqual([1, 2, 3]);
  });

  it("grows without losing anything", () => {
    const list = new IntList();
    for (let i = 0; i < 1000; i++) list.push(i);
    expect(list.length).toBe(1000);
    expect(list.at(999)).toBe(999);
    expect([...list.view(10, 13)]).toEqual([10, 11, 12]);
  });

  it("refuses reads out of range", () => {
    const list = new IntList();
    list.push(7);
    list.clear();
    expect(() => list.at(0)).toThrow(RangeError);
    expect(list.view(0, 5)).toHaveLength(0);
  });
});

const table: [SequenceState, SequenceEvent, SequenceState | null][] = [
  ["waiting", "schedule", "running"],
  ["waiting", "preempt", null],
  ["waiting", "finish", "finished"],
  ["running", "schedule", null],
  ["running", "preempt", "preempted"],
  ["running", "finish", "finished"],
  ["preempted", "schedule", "running"],
  ["preempted", "preempt", null],
  ["preempted", "finish", "finished"],
  ["finished", "schedule", null],
  ["finished", "preempt", null],
  ["finished", "finish", null],
];

describe("sequence states", () => {
  it.each(table)("%s + %s -> %s", (state, event, next) => {
    if (next === null) expect(() => transition(state, event)).toThrow(`a ${state} sequence cannot ${event}`);
    else expect(transition(state, event)).toBe(next);
  });
});
