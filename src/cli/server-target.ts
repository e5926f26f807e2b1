// Where commands that talk to a server find it, and with which token.

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
    .option("--api-key <KEY>", "access token with the scope training [FLYWHEEL_API_KEY, OPENAI_API_KEY]");
}

/** Gives up soon on a server that does not answer, unless told otherwise. */
export function clientFor({ url, apiKey }: TargetOptions, maxRetries = 1): FlywheelClient {
  return new FlywheelClient({ baseUrl: checkedUrl(url), apiKey: findKey(apiKey), maxRetries });
}

/** Without the scheme a request would fail as if the server were not there. */
export function checkedUrl(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new OperatorError(`--url expects something like http://127.0.0.1:8000/v1, not ${url}`);
  }
  return url;
}

/** The token that was given, or the environment's. */
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

/** An empty text is no number either: most likely a shell variable that is not set. */
export function readNumber(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value))
    throw new OperatorError(`${flag} expects a number, not ${text === "" ? "nothing" : text}`);
  return value;
}

/** Faults of the server and the network as one line for the person at the terminal. */
export async function asUsageErrors<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isConnectionFault(error))
      throw new OperatorError(`cannot reach ${url}: is the server running?`, { cause: error });
    if (error instanceof ApiError) throw new OperatorError(error.message, { cause: error });
    throw error;
  }
}
