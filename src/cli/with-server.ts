// `flywheel/server`, for programs: the server that they mean, or one of their own while they work.

import { loadConfig } from "../config/load.ts";
import { localServer, type ServerAddress } from "../store/local-key.ts";
import { serverOn, whileServing } from "./servers.ts";

/**
 * Works with the server that the environment names (OPENAI_BASE_URL, FLYWHEEL_API_KEY) or that runs on the data directory
 * (FLYWHEEL_DATA). If there is none, serves in this process until the work is done: the bundled model, or what
 * FLYWHEEL_MODEL and the other variables of `flywheel serve` say, on a free port.
 */
export async function withServer<Result>(work: (address: ServerAddress) => Promise<Result>): Promise<Result> {
  const { env } = process;
  if (env.OPENAI_BASE_URL || env.FLYWHEEL_API_KEY) return work(localServer());
  const file = env.FLYWHEEL_CONFIG || undefined;
  const config = loadConfig({ flags: env.FLYWHEEL_PORT ? {} : { port: 0 }, env, file });
  const running = await serverOn(config);
  if (running !== null) return work(running);
  process.env.ORT_DISABLE_TELEMETRY ??= "1"; // as for every command
  console.error("no server runs on this machine: serving until this is done (`flywheel serve` starts one that stays)");
  return whileServing(env.FLYWHEEL_LOG_LEVEL ? config : { ...config, logLevel: "error" }, work);
}
