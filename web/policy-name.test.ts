import { expect, it } from "vitest";
import type { TrainableModel } from "../src/client/types.ts";
import { policyNamed } from "./policy-name.ts";

it("finds the policy and the step behind a name", () => {
  const policy = { name: "agent", inference_name: "wandb-artifact:///e/p/agent" } as TrainableModel;
  const found = (name: string) => policyNamed(name, [policy]);
  expect(found("agent")).toEqual({ policy, step: null });
  expect(found("agent@14")).toEqual({ policy, step: 14 });
  expect(found("agent:step0")).toEqual({ policy, step: 0 });
  expect(found("wandb-artifact:///e/p/agent:step2")).toEqual({ policy, step: 2 });
  expect(found("flywheel-mini")).toBe(null);
});
