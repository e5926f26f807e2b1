import { expect, it } from "vitest";
import { timeLeft } from "./time-left.ts";

const start = "2026-01-01T00:00:00Z";
const after = (seconds: number) => Date.parse(start) + seconds * 1000;

it("goes on as the job went so far", () => {
  const job = { status: "RUNNING", training_start: start, gradient_steps: { done: 0, total: 40 } } as const;
  expect(timeLeft(job, 10, after(5))).toBe(15_000);
  expect(timeLeft(job, 40, after(5))).toBe(0);
  expect(timeLeft(job, 0, after(5))).toBeNull();
  expect(timeLeft({ ...job, status: "COMPLETED" }, 40, after(5))).toBeNull();
  expect(timeLeft({ ...job, gradient_steps: null }, 1, after(5))).toBeNull();
});
