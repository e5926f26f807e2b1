// The server and token for commands that talk to a server.

import type { Command } from "commander";
import { ApiError, FlywheelClient } from "../client/client.ts";
import { isConnectionFault } from "../client/http.ts";
import { OperatorError } from "../errors/operator-error.ts";

export interface TargetOptions {
  url: string;
  apiKey?: string;
}

export function addTargetOptions(command: Command): Command {
  return command
    .option("--url <URL>", "base URL of the server", process.env.OPENAI_BASE_URL || "http://127.0.0.1:8000/v1")
    .option("--api-key <KEY>", "access token with the training scope [FLYWHEEL_API_KEY, OPENAI_API_KEY]");
}

/** Retries once by default, so that commands fail quickly if the server is down. */
export function clientFor({ url, apiKey }: TargetOptions, maxRetries = 1): FlywheelClient {
  return new FlywheelClient({ baseUrl: checkedUrl(url), apiKey: findKey(apiKey), maxRetries });
}

/** A URL without a scheme would look like a server that is down. */
export function checkedUrl(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new OperatorError(`--url must look like http://127.0.0.1:8000/v1, not ${url}`);
  }
  return url;
}

/** The given token, or the one from the environment. */
export function findKey(given: string | undefined): string {
  const key = given ?? (process.env.FLYWHEEL_API_KEY || process.env.OPENAI_API_KEY);
  if (key === undefined || key === "") {
    throw new OperatorError("a token is needed: set FLYWHEEL_API_KEY or pass --api-key");
  }
  try {
    new Headers({ authorization: `Bearer ${key}` });
  } catch (error) {
    throw new OperatorError("the token has characters that cannot be sent: copy it again", { cause: error });
  }
  return key;
}

/** Refuses an empty string too: most likely an unset shell variable. */
export function readNumber(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) {
    throw new OperatorError(`${flag} expects a number, not ${text === "" ? "nothing" : text}`);
  }
  return value;
}

/** Turns errors of the server and the network into one-line messages. */
export async function asUsageErrors<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isConnectionFault(error)) {
      throw new OperatorError(`cannot reach ${url}: is the server running?`, { cause: error });
    }
    if (error instanceof ApiError) throw new OperatorError(error.message, { cause: error });
    throw error;
  }
}
