import { describe, expect, it } from "vitest";
import { type SequenceEvent, type SequenceState, transition } from "./sequence.ts";

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
