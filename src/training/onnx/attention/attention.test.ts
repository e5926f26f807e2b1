import { expect, it } from "vitest";
import { nearestHalf } from "../../../../test/native/halves.ts";
import { fixtureFolder } from "../../../../test/reference/runner-driver.ts";
import { hasKernels } from "../../../graph/session.ts";
import { readModelConfig } from "../../../model/checkpoint/model-config.ts";
import { Attention, type Projections } from "./attention.ts";
import { attentionCalls } from "./attention-calls.ts";

const config = readModelConfig(fixtureFolder("llama"));
const POSITIONS_PER_BLOCK = 16;
const ROWS = 70;

function waves(width: number, frequency: number): Float32Array {
  return Float32Array.from({ length: ROWS * width }, (_, i) => 2 * Math.sin(frequency * (i + 1) ** 2));
}

const queryWidth = config.numHeads * config.headDim;
const keyWidth = config.numKvHeads * config.headDim;
const given = { q: waves(queryWidth, 3), k: waves(keyWidth, 5), v: waves(keyWidth, 7) };

async function pass(weightType: "float32" | "int8", inputs: Projections) {
  const attention = await Attention.create(config, POSITIONS_PER_BLOCK, { threads: 1, weightType });
  const calls = attentionCalls([{ row: 0, count: ROWS, position: 0, parent: null }], null, POSITIONS_PER_BLOCK);
  const attended = await attention.forward(calls, inputs);
  const gradients = await attention.backward(calls, inputs, attended, waves(queryWidth, 11));
  await attention.close();
  return { attended, ...gradients };
}

it("with rounded weights, goes forward and backward with keys and values as the cache holds them", async () => {
  const found = await pass("int8", given);
  const held = { ...given, k: given.k.map(nearestHalf), v: given.v.map(nearestHalf) };
  expect(found).toEqual(await pass("float32", hasKernels ? held : given));
  if (hasKernels) expect(found).not.toEqual(await pass("float32", given));
});
