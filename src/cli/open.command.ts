// `flywheel open [PATH]`: prints a link that signs a browser in once, and opens it. With a token, the link stands for that
// token. Without one, whoever can read the server's data may make it, as with `flywheel tokens`. It then stands for the
// oldest admin token, which outlives the local key and so the server.

import { spawn } from "node:child_process";
import type { Command } from "commander";
import { OperatorError } from "../errors/faults.ts";
import { readLocalKey } from "../store/local-key.ts";
import { operatorOf, SessionStore } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import { ALIVE_MS, ServerTable } from "../store/tables/servers.ts";
import { TokenStore } from "../store/tokens.ts";
import { addOptionFlags, PLACE, type StorePlace, storePlace, withExistingStore } from "./flags.ts";
import { asUsageErrors, checkedUrl, checkKey, clientFor } from "./servers.ts";

interface OpenOptions {
  url?: string;
  apiKey?: string;
  browser: boolean;
}

const DEFAULT_URL = "http://127.0.0.1:8000";

export function addOpenCommand(program: Command): void {
  const command = program
    .command("open")
    .description("Open the page of a running server in a browser, signed in. The link works once, for 10 minutes.")
    .argument("[PATH]", "where to go, such as policies or jobs/ID", "")
    .option("--url <URL>", "base URL of the server [OPENAI_BASE_URL]")
    .option("--api-key <KEY>", "sign in as this token; default: as the operator, by --data [FLYWHEEL_API_KEY]")
    .option("--no-browser", "only print the link");
  addOptionFlags(command, PLACE);
  command.action(async (path: string, options: OpenOptions) => {
    const apiKey = options.apiKey ?? (process.env.FLYWHEEL_API_KEY || undefined);
    const link = await (apiKey === undefined ? linkByData(command, options) : linkByKey(options, apiKey));
    const url = new URL(`${link.origin}/${path.replace(/^\/+/, "")}`);
    url.hash = `code=${link.code}`;
    console.log(url.href);
    if (options.browser && process.stdout.isTTY) openBrowser(url.href);
  });
}

interface Link {
  /** Of the page, such as http://127.0.0.1:8000. */
  origin: string;
  code: string;
}

function linkByKey(options: OpenOptions, apiKey: string): Promise<Link> {
  checkKey(apiKey);
  const url = options.url ?? (process.env.OPENAI_BASE_URL || DEFAULT_URL);
  return asUsageErrors(url, async () => ({
    origin: new URL(checkedUrl(url)).origin,
    code: (await clientFor({ baseUrl: url, apiKey }).sessionCode()).code,
  }));
}

async function linkByData(command: Command, { url }: OpenOptions): Promise<Link> {
  const place = storePlace(command);
  return withExistingStore(place, async (store) => {
    const origin = url === undefined ? await serverOrigin(place, store) : new URL(checkedUrl(url)).origin;
    const { code } = await new SessionStore(store).createCode(await operatorOf(new TokenStore(store)));
    return { origin, code };
  });
}

/** The server that runs on the data directory, or one of those that share the database. */
async function serverOrigin({ data, database }: StorePlace, store: Store): Promise<string> {
  const url = database === null ? readLocalKey(data)?.url : await listedServer(store);
  if (url?.startsWith("unix:")) throw new OperatorError(`the server listens on ${url}: a browser needs a port`);
  try {
    await fetch(`${url ?? DEFAULT_URL}/version`);
    return url ?? DEFAULT_URL;
  } catch (error) {
    const hint = "is the server running? Give --url if it is elsewhere";
    throw new OperatorError(`cannot reach ${url ?? DEFAULT_URL}: ${hint}`, { cause: error });
  }
}

async function listedServer(store: Store): Promise<string | undefined> {
  const servers = await new ServerTable(store).list();
  const alive = servers.find(({ address, role, silentMs }) => {
    return role !== "worker" && silentMs < ALIVE_MS && address.startsWith("http");
  });
  return alive?.address;
}

/** Tries; whoever reads the link can open it too. */
function openBrowser(url: string): void {
  const hasScreen = process.platform !== "linux" || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (!hasScreen) return;
  const [program, ...args] =
    process.platform === "darwin"
      ? ["open", url]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", url]
        : ["xdg-open", url];
  spawn(program!, args, { stdio: "ignore", detached: true })
    .on("error", () => {})
    .unref();
}
