// Where commands that talk to a server find it, and with which token.

import type { Command } from "commander";
import { FlywheelClient } from "../client/client.ts";
import { UsageError } from "./usage-error.ts";

export interface TargetOptions {
  url: string;
  apiKey?: string;
}

export function addTargetOptions(command: Command): Command {
  return command
    .option("--url <URL>", "base URL of the server", process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1")
    .option("--api-key <KEY>", "access token with the scope training [FLYWHEEL_API_KEY, OPENAI_API_KEY]");
}

export function clientFor({ url, apiKey }: TargetOptions): FlywheelClient {
  const key = apiKey ?? process.env.FLYWHEEL_API_KEY ?? process.env.OPENAI_API_KEY;
  if (key === undefined || key === "") {
    throw new UsageError("a token is needed: set FLYWHEEL_API_KEY or pass --api-key");
  }
  return new FlywheelClient({ baseUrl: url, apiKey: key, maxRetries: 1 });
}

/** Faults of the server and the network as one line for the person at the terminal. */
export async function asUsageErrors<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TypeError)
      throw new UsageError(`cannot reach ${url}: is the server running?`, { cause: error });
    const name = (error as Error).name;
    if (name === "ApiError" || name === "TrainingFailedError") {
      throw new UsageError((error as Error).message, { cause: error });
    }
    throw error;
  }
}
