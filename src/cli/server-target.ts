// The server and token for commands that talk to a server: what was given, or the server that runs on this machine.

import type { Command } from "commander";
import { ApiError, FlywheelClient } from "../client/client.ts";
import { isConnectionFault } from "../client/http.ts";
import { OperatorError } from "../errors/faults.ts";
import { localServer, type ServerAddress } from "../store/local-key.ts";
import { addOptionFlags } from "./option-flags.ts";

export interface TargetOptions {
  url?: string;
  apiKey?: string;
  /** Data directory of the server on this machine. */
  data?: string;
}

export function addTargetOptions(command: Command): Command {
  command
    .option("--url <URL>", "base URL of the server; default: the one that runs on --data [OPENAI_BASE_URL]")
    .option(
      "--api-key <KEY>",
      "access token; default: the key of the server on --data [FLYWHEEL_API_KEY, OPENAI_API_KEY]",
    );
  addOptionFlags(command, ["data"]);
  return command;
}

/** Throws OperatorError if the URL or the token cannot be used, or there is none. */
export function targetOf({ url, apiKey, data }: TargetOptions): ServerAddress {
  if (url !== undefined) checkedUrl(url);
  const target = localServer({ url, apiKey, data });
  checkedUrl(target.baseUrl);
  checkKey(target.apiKey);
  return target;
}

/** Does work with a server, and turns its errors and those of the network into one-line messages. */
export async function withServer<Result>(
  options: TargetOptions,
  work: (client: FlywheelClient, target: ServerAddress) => Promise<Result>,
): Promise<Result> {
  const target = targetOf(options);
  return asUsageErrors(target.baseUrl, () => work(clientFor(target), target));
}

/** Retries once by default, so that commands fail quickly if the server is down. */
export function clientFor(target: ServerAddress, maxRetries = 1): FlywheelClient {
  return new FlywheelClient({ ...target, maxRetries });
}

/** A URL without a scheme would look like a server that is down. */
export function checkedUrl(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new OperatorError(`--url must look like http://127.0.0.1:8000/v1, not ${url}`);
  }
  return url;
}

/** Throws OperatorError if a request cannot carry the token. */
export function checkKey(key: string): void {
  if (key === "") throw new OperatorError("--api-key is empty: leave it out, or give a token");
  if (!canBeSent(key)) throw new OperatorError("the token has characters that cannot be sent: copy it again");
}

/** Headers carry no line breaks, and no characters beyond Latin-1. */
export function canBeSent(key: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(key);
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

export async function asUsageErrors<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isConnectionFault(error)) throw unreachable(url, error);
    if (error instanceof ApiError) throw new OperatorError(error.message, { cause: error });
    throw error;
  }
}

export function unreachable(url: string, cause: unknown): OperatorError {
  const start = "start one with `flywheel serve`, or give --url";
  return new OperatorError(`cannot reach ${url}: is the server running? If not, ${start}`, { cause });
}
