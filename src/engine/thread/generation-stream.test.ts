import { describe, expect, it } from "vitest";
import type { EngineOutput } from "../contract.ts";
import { GenerationStream } from "./generation-stream.ts";

const tokens = (index: number, id: number, last = false): EngineOutput => ({
  type: "tokens",
  index,
  tokens: [{ id, logprobs: null }],
  finish: last ? { reason: "length", stopReason: null } : null,
});

function stream(n: number): { generation: GenerationStream; cancelled: (number | null)[] } {
  const cancelled: (number | null)[] = [];
  return { generation: new GenerationStream(n, (index) => cancelled.push(index)), cancelled };
}

async function rest(generation: GenerationStream): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

describe("GenerationStream", () => {
  it("delivers in order and ends after the last choice", async () => {
    const { generation, cancelled } = stream(2);
    const reading = rest(generation);
    const outputs = [tokens(0, 5), tokens(1, 6, true), tokens(0, 7, true)];
    for (const output of outputs) {
      await null;
      generation.push(output);
    }
    expect(await reading).toEqual(outputs);
    expect(cancelled).toEqual([]);
  });

  it("drops unread and later outputs of a stopped choice, and keeps those of the others", async () => {
    const { generation, cancelled } = stream(2);
    generation.push(tokens(0, 5));
    generation.push(tokens(1, 6));
    generation.stop(0);
    generation.push(tokens(0, 7, true));
    generation.push(tokens(1, 8, true));
    expect(await rest(generation)).toEqual([tokens(1, 6), tokens(1, 8, true)]);
    expect(cancelled).toEqual([0]);
  });

  it("drops a finish that was not read yet when its choice is stopped", async () => {
    const { generation, cancelled } = stream(1);
    generation.push(tokens(0, 5, true));
    generation.stop(0);
    expect(await rest(generation)).toEqual([]);
    expect(cancelled).toEqual([]);
  });

  it("cancels the request when the last open choice is stopped", async () => {
    const { generation, cancelled } = stream(2);
    const reading = rest(generation);
    generation.stop(1);
    generation.stop(0);
    generation.stop(0);
    expect(await reading).toEqual([]);
    expect(cancelled).toEqual([1, null]);
  });

  it("ends at once on abort, even with a reader waiting, and cancels only once", async () => {
    const { generation, cancelled } = stream(3);
    const reading = rest(generation);
    await null;
    generation.abort();
    generation.abort();
    generation.push(tokens(0, 1));
    expect(await reading).toEqual([]);
    expect(cancelled).toEqual([null]);
  });

  it("aborts when the reader breaks out", async () => {
    const { generation, cancelled } = stream(1);
    generation.push(tokens(0, 5));
    generation.push(tokens(0, 6));
    for await (const _ of generation) break;
    expect(cancelled).toEqual([null]);
  });

  it("fails only the open choices", async () => {
    const { generation } = stream(2);
    generation.push(tokens(0, 5, true));
    generation.fail("gone");
    expect(await rest(generation)).toEqual([
      tokens(0, 5, true),
      { type: "tokens", index: 1, tokens: [], finish: { reason: "error", stopReason: null, message: "gone" } },
    ]);
  });

  it("refuses a second iteration", async () => {
    const { generation } = stream(1);
    generation.abort();
    await rest(generation);
    expect(() => generation[Symbol.asyncIterator]()).toThrow("once");
  });
});
