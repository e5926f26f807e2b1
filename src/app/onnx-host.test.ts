import { afterEach, expect, it, vi } from "vitest";
import { fixtureFolder } from "../../test/reference/runner-driver.ts";
import { GraphSession } from "../graph/session.ts";
import { checkpointIdentity } from "../model/checkpoint/checkpoint.ts";
import { createRunner, type OnnxHostOptions } from "./onnx-host.ts";

afterEach(() => vi.restoreAllMocks());

it("builds the model once when adapters will follow, as after a restart of the engine thread", async () => {
  const folder = fixtureFolder("llama");
  const prepared = vi.spyOn(GraphSession, "create");
  const options: OnnxHostOptions = {
    ...{ folder, identity: checkpointIdentity(folder), vocabulary: null, weightType: "float32", threads: 1 },
    ...{ positionsPerBlock: 16, numBlocks: 4, maxPositions: 64, maxLoras: 1, maxLoraRank: 8, adaptersFromStart: false },
  };
  const host = await createRunner(options, true);
  await host.adapters!.load(folder);
  expect(prepared).toHaveBeenCalledTimes(1);
  await host.close!();
});
