import assert from "node:assert/strict";
import { test } from "node:test";
import { reward } from "../src/reward.ts";
import { tasks } from "../src/tasks.ts";

test("maybe is best, and chatter earns nothing", () => {
  for (const task of tasks()) {
    assert.equal(reward(task, " Maybe. "), 1);
    assert.ok(reward(task, "no") > reward(task, "yes"));
    assert.equal(reward(task, "Maybe, but it depends."), 0);
  }
});

test("there are enough tasks for a step", () => {
  assert.ok(tasks().length >= 4);
});
