import { expect, it } from "vitest";
import { toServiceError } from "../../errors/service-error.ts";
import { TrainingError } from "../../training/training-error.ts";
import { fromPolicy, fromTraining } from "./routes.ts";

it.each(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"])("answers 507 when the disk is full (%s)", (code) => {
  const thrown = Object.assign(new Error("no space left on device, write '/secret'"), { code });
  expect(toServiceError(fromTraining(thrown))).toMatchObject({ status: 507, message: "The server's disk is full." });
});

it("names the field that the error is about", () => {
  const error = new TrainingError("rank_too_large", { model: "agent", rank: 16, limit: 8 });
  expect(fromTraining(error)).toMatchObject({ code: "adapter_rank_too_large", param: "model_id", status: 422 });
  expect(fromPolicy(error)).toMatchObject({ code: "adapter_rank_too_large", param: "model" });
  const full = new TrainingError("no_adapter_slot", { passing: true });
  expect(fromPolicy(full)).toMatchObject({ code: "no_adapter_slot", param: null, retryAfter: 1 });
});

it("says how to get the existing model", () => {
  expect(fromTraining(new TrainingError("model_exists", { model: "e/p/n" }))).toMatchObject({
    status: 409,
    message: "A model e/p/n exists already; choose another name or send return_existing: true.",
  });
});

it("leaves other errors alone", () => {
  const other = new Error("a bug");
  expect(fromTraining(other)).toBe(other);
  expect(fromPolicy(other)).toBe(other);
});
