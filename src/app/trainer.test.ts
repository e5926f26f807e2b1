import { expect, it } from "vitest";
import { loadConfig } from "../config/load.ts";
import type { Config } from "../config/options.ts";
import { roundsOtherwise, trainedWeights } from "./trainer.ts";

const config = (changes: Partial<Config>): Config => ({ ...loadConfig({ env: {} }), ...changes });

it("refuses to train unrounded weights behind rounded ones, and says what to do", () => {
  for (const weightType of ["int8", "int4"] as const) {
    expect(() => trainedWeights(config({ trainer: "torch" }), { folder: "", weightType })).toThrow(
      `samples from ${weightType} ones: add --dtype float32`,
    );
    expect(trainedWeights(config({ trainer: "onnx" }), { folder: "", weightType })).toBe(weightType);
  }
  const served = { folder: "", weightType: "float32" } as const;
  expect(trainedWeights(config({ trainer: "torch" }), served)).toBe("bfloat16");
});

it("knows when sampler and trainer round differently", () => {
  expect(roundsOtherwise(config({ trainer: "torch" }))).toBe(true);
  expect(roundsOtherwise(config({ trainer: "torch", trainerDtype: "float32" }))).toBe(false);
  expect(roundsOtherwise(config({ trainer: "torch", engineUrl: ["http://127.0.0.1:9"] }))).toBe(false);
  expect(roundsOtherwise(config({ trainer: "onnx" }))).toBe(false);
  expect(roundsOtherwise(config({ trainer: "torch", device: "cuda" }))).toBe(false);
  expect(roundsOtherwise(config({ trainer: "torch", device: "cuda", trainerDtype: "float32" }))).toBe(true);
});
