// The server that a command speaks to: a named one, the one that runs here, or one of its own.
import type { Command } from "commander";
import type { StartedServer, StartOptions } from "../app/serve.ts";
import { ApiError, FlywheelClient } from "../client/client.ts";
import { isConnectionFault } from "../client/http.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { type LocalKey, localServer, readLocalKey, type ServerAddress } from "../store/local-key.ts";
import { addOptionFlags } from "./flags.ts";

// The server and token for commands that talk to a server: what was given, or the server that runs on this machine.

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
export async function withClient<Result>(
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

/** What comes in pages. */
export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
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

// Whether a server of ours answers at an address.

const PATIENCE_MS = 3000;

/** The version of the Flywheel server there; null = nothing answers, or something else does. */
export async function answeringVersion(url: string): Promise<string | null> {
  if (!url.startsWith("http")) return null;
  try {
    const response = await fetch(`${url}/version`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    const { version } = (await response.json()) as { version?: unknown };
    return typeof version === "string" ? version : null;
  } catch {
    return null; // nobody listens there, or speaks something else
  }
}

// The server that runs on the data directory, or one in this process for as long as some work takes.

/** null: none answers. */
export async function serverOn({ data }: Config): Promise<ServerAddress | null> {
  const key = readLocalKey(data);
  return key !== null && (await answeringVersion(key.url)) !== null ? addressOf(key) : null;
}

/** What makes a server is loaded only now, so that --help and talking to a running one start quickly. */
export async function startHere(config: Config, options?: StartOptions): Promise<StartedServer> {
  const [{ startServer }, { loadModel }, { createTraining }] = await Promise.all([
    import("../app/serve.ts"),
    import("../app/load-model.ts"),
    import("../app/training.ts"),
  ]);
  return startServer(config, loadModel, config.training ? [createTraining] : [], options);
}

export async function whileServing<Result>(
  config: Config,
  work: (address: ServerAddress) => Promise<Result>,
): Promise<Result> {
  // The first token is for the first server that stays: there, somebody reads it.
  const server = await startHere(config, { firstToken: false });
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
