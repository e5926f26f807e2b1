// The server that runs on the data directory, or one in this process for as long as some work takes.

import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { type LocalKey, readLocalKey, type ServerAddress } from "../store/local-key.ts";
import { answeringVersion } from "./answering-server.ts";

/** null: none answers. */
export async function runningServer({ data }: Config): Promise<ServerAddress | null> {
  const key = readLocalKey(data);
  return key !== null && (await answeringVersion(key.url)) !== null ? addressOf(key) : null;
}

export async function whileServing<Result>(
  config: Config,
  work: (address: ServerAddress) => Promise<Result>,
): Promise<Result> {
  // Imported here, so that --help and talking to a running server start quickly.
  const [{ startServer }, { loadModel }, { createTraining }] = await Promise.all([
    import("../app/serve.ts"),
    import("../app/load-model.ts"),
    import("../app/training.ts"),
  ]);
  // The first token is for the first server that stays: there, somebody reads it.
  const server = await startServer(config, loadModel, config.training ? [createTraining] : [], { firstToken: false });
  try {
    const key = readLocalKey(config.data);
    if (key === null) throw new OperatorError(`the server could not write its key into ${config.data}`);
    return await work(addressOf(key));
  } finally {
    await server.close();
  }
}

function addressOf({ url, token }: LocalKey): ServerAddress {
  if (url.startsWith("unix:")) throw new OperatorError("cannot talk over a Unix socket: leave out --uds");
  return { baseUrl: `${url}/v1`, apiKey: token };
}
