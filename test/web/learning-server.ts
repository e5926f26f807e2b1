// A server with a tiny model and real gradients, for the tests of the pages that show training, and jobs to show.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { FlywheelClient, type TrainableModel } from "../../src/client/client.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/options.ts";
import { LLAMA } from "../support/training-service.ts";

export { answers, groupOf, STORY_REWARDS, storyGroups } from "./stories.ts";

export const KEY = "key";

export interface LearningServer extends StartedServer {
  client: FlywheelClient;
  /** A new policy with this name. */
  register(name: string): Promise<TrainableModel>;
}

/** `more`: of the configuration. */
export async function startLearningServer(more: Partial<Config> = {}): Promise<LearningServer> {
  const data = mkdtempSync(join(tmpdir(), "flywheel-web-"));
  const server = await startServer(
    {
      ...loadConfig({ env: {} }),
      ...{ port: 0, data, apiKey: [KEY], logLevel: "error", model: LLAMA, servedModelName: ["tiny"] },
      ...{ dtype: "int8", threads: 1, loraRank: 4, loraAlpha: 8 },
      ...more,
    },
    loadModel,
    [createTraining],
  );
  const client = new FlywheelClient({ baseUrl: server.url, apiKey: KEY });
  const register = (name: string) => client.register({ project: "p", name, base_model: "tiny" });
  const close = async () => {
    await server.close();
    rmSync(data, { recursive: true, force: true });
  };
  return { ...server, client, register, close };
}
