// The key of a running server for programs of the same user on the same machine: a file in its data directory with the
// server's address, a token and its process. Only its owner can read it. The server makes a new one at every start and every day,
// and removes it when it stops. Windows has no modes; there the file inherits who may read the data directory, which is
// by default in the user's own profile.

import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { OperatorError } from "../errors/faults.ts";
import { isJsonObject } from "../json/json.ts";
import { writeFileDurably } from "../system/files.ts";
import { isLoopback } from "../system/text.ts";

export const LOCAL_KEY_FILE = "local-key.json";

export interface LocalKey {
  /** Of the server, as this machine reaches it: http://127.0.0.1:8000, or unix:PATH. */
  url: string;
  token: string;
  /** The process of the server; null in files of earlier versions. */
  pid: number | null;
}

const OWNER_ONLY = 0o600;

export function writeLocalKey(dataDir: string, key: LocalKey): void {
  const text = `${JSON.stringify({ url: key.url, token: key.token, pid: key.pid })}\n`;
  writeFileDurably(join(dataDir, LOCAL_KEY_FILE), [new TextEncoder().encode(text)], OWNER_ONLY);
}

/** Removes the file, unless another server has written its own key there. */
export function removeLocalKey(dataDir: string, tokens: readonly string[]): void {
  const found = formerToken(dataDir);
  if (found !== null && tokens.includes(found)) rmSync(join(dataDir, LOCAL_KEY_FILE), { force: true });
}

/** The token in the file, whoever may have read it: for taking it back. */
export function formerToken(dataDir: string): string | null {
  try {
    return parseKey(readFileSync(join(dataDir, LOCAL_KEY_FILE), "utf8"))?.token ?? null;
  } catch {
    return null; // no file, or none that can be read: nothing to take back
  }
}

/** null = there is none, so no server runs on this folder. Throws OperatorError if others could have read or made it. */
export function readLocalKey(dataDir: string): LocalKey | null {
  const file = join(dataDir, LOCAL_KEY_FILE);
  const text = readPrivately(file);
  if (text === null) return null;
  const key = parseKey(text);
  if (key === null) throw new OperatorError(`${file} is not what a server wrote: start the server again`);
  return key;
}

function parseKey(text: string): LocalKey | null {
  let key: unknown;
  try {
    key = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isJsonObject(key) || typeof key.url !== "string" || typeof key.token !== "string") return null;
  return { url: key.url, token: key.token, pid: Number.isInteger(key.pid) ? (key.pid as number) : null };
}

function readPrivately(file: string): string | null {
  let descriptor: number;
  try {
    // Not through a link, which could lead to a file of someone else's choice; not waiting for a pipe.
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    if (code === "EACCES") {
      const fix = "run the command as that user, or give --api-key";
      throw new OperatorError(`${file} belongs to another user: ${fix}`, { cause: error });
    }
    if (code === "ELOOP") throw new OperatorError(`${file} is a link: remove it and start the server again`);
    throw new OperatorError(`cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
  try {
    refuseShared(file, fstatSync(descriptor));
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

function refuseShared(file: string, { uid, mode }: Stats): void {
  if ((mode & constants.S_IFMT) !== constants.S_IFREG) {
    throw new OperatorError(`${file} is not a file: remove it and start the server again`);
  }
  if (process.platform === "win32") return;
  if (uid !== process.geteuid!()) {
    const fix = "run the command as that user, or give --api-key";
    throw new OperatorError(`${file} belongs to another user (${uid}, not ${process.geteuid!()}): ${fix}`);
  }
  if ((mode & 0o077) !== 0) {
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    const fix = "start the server again, which makes a new key";
    throw new OperatorError(`other users can read or change ${file} (mode ${shown}, not 0600): ${fix}`);
  }
}

export interface ServerAddress {
  baseUrl: string;
  apiKey: string;
}

const DEFAULT_URL = "http://127.0.0.1:8000/v1";

/**
 * The server that a program on this machine means, with a token for it. From the environment (OPENAI_BASE_URL,
 * FLYWHEEL_API_KEY, OPENAI_API_KEY), and what is missing there from the server that runs on the data directory
 * (FLYWHEEL_DATA). A key is sent only to the server that wrote it. Throws OperatorError if there is no token.
 */
export function localServer(
  given: { url?: string | undefined; apiKey?: string | undefined; data?: string | undefined } = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): ServerAddress {
  const data = given.data ?? (env.FLYWHEEL_DATA || join(homedir(), ".flywheel"));
  const url = given.url ?? (env.OPENAI_BASE_URL || undefined);
  // OpenAI's own key is in many environments. It means this server only together with a base URL.
  const apiKey =
    given.apiKey ?? (env.FLYWHEEL_API_KEY || (env.OPENAI_BASE_URL ? env.OPENAI_API_KEY || undefined : undefined));
  if (url !== undefined && apiKey !== undefined) return { baseUrl: url, apiKey };
  const local = apiKey === undefined ? readLocalKey(data) : usableKey(data);
  if (local?.url.startsWith("unix:")) {
    throw new OperatorError(
      `the server of ${data} listens on a Unix socket: give --url and --api-key of one with a port`,
    );
  }
  const baseUrl = url ?? (local === null ? DEFAULT_URL : `${local.url}/v1`);
  const key = apiKey ?? (local !== null && isSame(local.url, baseUrl) ? local.token : env.OPENAI_API_KEY || undefined);
  if (key === undefined) throw new OperatorError(noToken(baseUrl, local, data));
  return { baseUrl, apiKey: key };
}

/** As readLocalKey, but a file that is not to be trusted counts as none. */
export function usableKey(data: string): LocalKey | null {
  try {
    return readLocalKey(data);
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}

/** Whether a URL names the server that wrote a key. It may say localhost for 127.0.0.1. */
export function isSame(written: string, url: string): boolean {
  if (!URL.canParse(written) || !URL.canParse(url)) return false;
  const [one, other] = [new URL(written), new URL(url)];
  if (one.protocol !== other.protocol || one.port !== other.port) return false;
  const [here, there] = [one, other].map(({ hostname }) => hostname.replace(/^\[|\]$/g, "")) as [string, string];
  return here === there || (isLoopback(here) && isLoopback(there));
}

function noToken(url: string, local: LocalKey | null, data: string): string {
  const give = "set FLYWHEEL_API_KEY or pass --api-key";
  if (local !== null) return `a token is needed for ${url}: the key in ${data} is for ${local.url}. ${give}`;
  const elsewhere = `${give}: for a server elsewhere, a token is needed`;
  return `no server of yours runs on ${data}. Start one with \`flywheel serve\`, or ${elsewhere}`;
}
