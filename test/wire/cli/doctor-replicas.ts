// What tests of `flywheel doctor` need: a healthy replica for the whole file, replicas with a fault, and our side.
import { afterEach } from "vitest";
import { loadModel } from "../../../src/app/load-model.ts";
import { loadText } from "../../../src/app/model-files.ts";
import { startServer } from "../../../src/app/serve.ts";
import type { OurSide } from "../../../src/cli/doctor/replica.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readModelConfig } from "../../../src/model/checkpoint/model-config.ts";
import { fresh, MODEL } from "../../support/cli-process.ts";
import { type Fault, type FaultyReplica, startFaulty } from "../../support/faulty-replica.ts";
import { shared } from "../../support/shared-server.ts";
import { API_KEY } from "../../support/test-server.ts";

/** Call it once, outside of tests. */
export function doctorReplicas() {
  const healthy = shared(() => {
    const config = { ...loadConfig({ env: {} }), model: MODEL, port: 0, apiKey: [API_KEY], logLevel: "error" as const };
    return startServer({ ...config, data: fresh(), training: false }, loadModel);
  });

  const opened: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const server of opened.splice(0)) await server.close();
  });

  async function faulty(fault: Fault): Promise<FaultyReplica> {
    const replica = await startFaulty(healthy.url, fault);
    opened.push(replica);
    return replica;
  }

  async function ourSide(): Promise<OurSide> {
    const shape = readModelConfig(MODEL);
    const text = await loadText(MODEL, loadConfig({ env: {} }));
    opened.push(text);
    return {
      text,
      shape,
      eosTokenIds: shape.eosTokenIds,
      maxLogprobs: 20,
      maxLoraRank: 64,
      maxModelLen: 512,
      data: fresh(),
    };
  }

  /** Closes something after the test. */
  function closeLater(server: { close(): unknown }): void {
    opened.push(server);
  }

  return { healthy, faulty, ourSide, closeLater };
}
