import { expect, it } from "vitest";
import type { TrainableModel } from "../../src/client/types.ts";
import { hasGradientStep, mergeJobs, mergePolicies, type News } from "./news.ts";
import type { JobSummary } from "./rows.ts";

const job = (id: string, part: Partial<JobSummary> = {}): JobSummary => ({
  ...{ id, status: "RUNNING", progress: 0.1, updated_at: "a", error_message: null },
  ...part,
});
const told = (id: string, status: JobSummary["status"], progress: number): News => ({
  event: "job",
  data: { id, model_id: "p", status, progress, updated_at: "b" },
});
const policies = [
  { id: "p", last_job: job("j") },
  { id: "q", last_job: null },
] as TrainableModel[];

it("puts the progress of a job into the row of its policy", () => {
  const { rows, isStale } = mergePolicies(policies, [told("j", "RUNNING", 0.4), told("j", "RUNNING", 0.6)]);
  expect(isStale).toBe(false);
  expect(rows[0]!.last_job).toEqual(job("j", { progress: 0.6, updated_at: "b" }));
  expect(rows[1]).toBe(policies[1]);
});

it("asks again for what only the server knows", () => {
  const isStale = (...news: News[]) => mergePolicies(policies, news).isStale;
  expect(isStale(told("j", "COMPLETED", 1))).toBe(true);
  expect(isStale(told("new", "PENDING", 0))).toBe(true);
  expect(isStale({ event: "step", data: { model_id: "p", step: 1 } })).toBe(true);
  expect(isStale({ event: "model", data: { id: "r", deleted: false } })).toBe(true);
  expect(isStale({ event: "ready", data: { complete: false } })).toBe(true);
  expect(isStale({ event: "job_event", data: { job_id: "j", event: { type: "gradient_step" } } })).toBe(false);
});

it("drops a deleted policy", () => {
  const { rows, isStale } = mergePolicies(policies, [{ event: "model", data: { id: "p", deleted: true } }]);
  expect([rows.map(({ id }) => id), isStale]).toEqual([["q"], false]);
});

it("leaves the jobs of other policies alone", () => {
  const jobs = [job("j")];
  expect(mergeJobs(jobs, "p", [told("j", "RUNNING", 0.5)])).toEqual({
    rows: [job("j", { progress: 0.5, updated_at: "b" })],
    isStale: false,
  });
  expect(mergeJobs(jobs, "other", [told("x", "PENDING", 0)])).toEqual({ rows: jobs, isStale: false });
  expect(mergeJobs(jobs, "p", [told("x", "PENDING", 0)]).isStale).toBe(true);
  expect(mergeJobs(jobs, "p", [{ event: "step", data: { model_id: "p", step: 2 } }]).isStale).toBe(true);
});

it("knows whose gradient step it was", () => {
  const step = (id: string): News => ({ event: "job_event", data: { job_id: id, event: { type: "gradient_step" } } });
  expect([hasGradientStep([job("j")], [step("j")]), hasGradientStep([job("j")], [step("x")])]).toEqual([true, false]);
});
