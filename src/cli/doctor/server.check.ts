// Checks of the server that runs on a data directory: whether it answers, in this version, and takes its own key; and of the
// port, if none runs. `flywheel status` shows the same findings.

import { connect, type NetConnectOpts } from "node:net";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { type LocalKey, readLocalKey } from "../../store/local-key.ts";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { answeringVersion, canBeSent } from "../servers.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

export type ServerPlace = Pick<Config, "data" | "host" | "port">;

export async function* checkServer(place: ServerPlace): AsyncGenerator<Finding> {
  let key: LocalKey | null = null;
  try {
    key = readLocalKey(place.data);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield wrong("key", error.message, "Fix the file, or give commands --api-key.");
  }
  if (key === null) {
    yield await checkPort(place);
    return;
  }
  if (key.url.startsWith("unix:") && (await isTaken({ path: key.url.slice("unix:".length) }))) {
    yield ok("server", `a server listens on ${key.url}`);
    return;
  }
  const version = await answeringVersion(key.url);
  if (version === null) {
    yield await checkPort(place);
    const left = `a server ended without taking its key away: ${key.url} does not answer`;
    yield warning("key", left, "The next start replaces it.");
    return;
  }
  yield version === PACKAGE_VERSION
    ? ok("server", `Flywheel ${version} answers at ${key.url}`)
    : warning("server", `Flywheel ${version} answers at ${key.url}, not ${PACKAGE_VERSION}`, "Start it again.");
  yield await checkKey(key);
  const given = process.env.FLYWHEEL_API_KEY;
  if (given) yield await checkToken(key.url, given);
}

async function checkPort({ data, host, port }: ServerPlace): Promise<Finding> {
  const here = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  if (port !== 0 && (await isTaken({ host: here, port }))) {
    const advice = "Give serve another --port, or 0 for a free one.";
    return warning("port", `another program listens on ${host}:${port}`, advice);
  }
  return ok("port", `${host}:${port} is free; no server runs on ${data}`);
}

/** Whether the server takes the key that it wrote. */
async function checkKey({ url, token }: LocalKey): Promise<Finding> {
  if (!canBeSent(token)) return wrong("key", "the key in the data folder is damaged", "Start the server again.");
  const status = await statusOf(url, token);
  if (status === 200) return ok("key", "commands on this machine need no token");
  const fix = "Start the server again, or give --api-key.";
  return wrong("key", `the server refuses its own key (${status})`, fix);
}

/** Commands prefer the token of the environment, which may be of another server or revoked. */
async function checkToken(url: string, token: string): Promise<Finding> {
  if (!canBeSent(token)) {
    const problem = "the token in FLYWHEEL_API_KEY has characters that cannot be sent";
    return wrong("token", problem, "Copy it again, or unset it: on this machine, commands need none.");
  }
  const status = await statusOf(url, token);
  if (status === 200) return ok("token", "the server takes the token in FLYWHEEL_API_KEY");
  const fix = "Unset it: on this machine, commands need none. Or make one with `flywheel tokens create`.";
  return wrong("token", `the server refuses the token in FLYWHEEL_API_KEY (${status})`, fix);
}

/** Of a request with the token. */
async function statusOf(url: string, token: string): Promise<number> {
  return (await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status;
}

function isTaken(place: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(place);
    const settle = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket
      .setTimeout(2000, () => settle(false))
      .on("connect", () => settle(true))
      .on("error", () => settle(false));
  });
}
