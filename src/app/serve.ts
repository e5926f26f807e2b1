// Starts and stops a server: data directory, tokens, model, HTTP. The model comes from a factory, so that tests can
// serve a fake; the real one is in load-model.ts.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { RouteGroup } from "../api/server.ts";
import { Service, type ServiceParts } from "../api/service.ts";
import { shownConfig } from "../config/load.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/operator-error.ts";
import { createLog, type Log } from "../observe/log.ts";
import { Metrics } from "../observe/metrics.ts";
import { openDataDir } from "../store/data-dir.ts";
import type { Store } from "../store/db.ts";
import { lockDataDir } from "../store/instance-lock.ts";
import { ModelTable } from "../store/model-table.ts";
import { SCOPES, TokenStore } from "../store/tokens.ts";
import { addressOf, isLoopback, listen, tryAddress } from "./listen.ts";

/** What a model brings along. `close` frees what is not the engine's. */
export interface LoadedModel extends Omit<ServiceParts, "config" | "tokens" | "metrics" | "log"> {
  close(): Promise<void>;
}

/** `adaptersToCome`: adapters were trained before, or are given by options, so requests for them will come. */
export type LoadModel = (config: Config, log: Log, metrics: Metrics, adaptersToCome: boolean) => Promise<LoadedModel>;

/** What more a server offers: training. Made after the service, closed before the engine. */
export interface Extension {
  routes: RouteGroup;
  close(): Promise<void>;
}

export type CreateExtension = (service: Service, store: Store) => Promise<Extension>;

export interface RunningServer {
  service: Service;
  url: string;
  /** A token that works now: the first one, made at this start, or one for trying out; null when neither was made. */
  token: { secret: string; first: boolean } | null;
  /** Drains within `shutdownTimeout` and closes everything. */
  close(): Promise<void>;
}

/** How long the token in the printed curl line works. */
const TRYOUT_SECONDS = 3600;

/** How long connections have to carry the last bytes away when the server stops. */
const LAST_BYTES_MS = 2000;

export async function startServer(
  config: Config,
  loadModel: LoadModel,
  extensions: readonly CreateExtension[] = [],
): Promise<RunningServer> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  log.info("starting", shownConfig(config));
  const store = openDataDir(config.data);
  const held = [() => store.close()];
  const release = () => {
    for (const give of held.splice(0).reverse()) give();
  };
  try {
    // Without extensions only tokens are kept in the folder, and servers may share them.
    if (extensions.length > 0) held.push(lockDataDir(config.data));
    return await start(config, loadModel, extensions, { log, store, release });
  } catch (error) {
    release();
    throw error;
  }
}

async function start(
  config: Config,
  loadModel: LoadModel,
  extensions: readonly CreateExtension[],
  { log, store, release }: { log: Log; store: Store; release: () => void },
): Promise<RunningServer> {
  const tokens = new TokenStore(store);
  const adapters = config.loraModules.map(readLoraModule);
  checkAdapters(adapters);
  const needsToken = lacksToken(config, tokens);
  await tryAddress(config);
  const metrics = new Metrics();
  const adaptersToCome = adapters.length > 0 || new ModelTable(store).hasTrainedSteps();
  // The HTTP framework loads while the engine does.
  const [model, { createServer }] = await Promise.all([
    loadModel(config, log, metrics, adaptersToCome),
    import("../api/server.ts"),
  ]);
  const service = new Service({ ...model, config, tokens, metrics, log });
  const opened: Extension[] = [];
  /** All of them, whatever goes wrong with one; then the first fault is thrown. */
  const closeAll = async () => {
    const parts = [...opened.toReversed(), model.engine, model];
    const faults: unknown[] = [];
    for (const part of parts) await part.close().catch((error: unknown) => faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  let app: FastifyInstance | null = null;
  let first: string | null = null;
  try {
    for (const create of extensions) opened.push(await create(service, store));
    app = createServer(
      service,
      opened.map(({ routes }) => routes),
    );
    await loadAdapters(service, adapters);
    await listen(app, config);
    // Only now: a start that fails shows nothing.
    if (needsToken) first = tokens.createFirst({ name: "first", scopes: SCOPES, lifetime: null })?.secret ?? null;
  } catch (error) {
    // What else goes wrong now is less than the reason.
    await app?.close().catch(() => {});
    await closeAll().catch(() => {});
    throw error;
  }
  const listening = app;
  return {
    service,
    url: addressOf(listening, config),
    token: first === null ? tryoutToken(config, service) : { secret: first, first: true },
    close: async () => {
      try {
        await service.drain(config.shutdownTimeout);
        await closeConnections(listening);
      } finally {
        await closeAll().finally(release);
      }
    },
  };
}

/** What is still open after the drain belongs to clients that do not read, or never finish sending. */
async function closeConnections(app: FastifyInstance): Promise<void> {
  const force = setTimeout(() => app.server.closeAllConnections(), LAST_BYTES_MS);
  await app.close();
  clearTimeout(force);
}

/** Without any token the first one will be made, on loopback; elsewhere the server does not start. */
function lacksToken(config: Config, tokens: TokenStore): boolean {
  if (config.apiKey.length > 0 || tokens.hasUsable()) return false;
  if (config.uds === null && !isLoopback(config.host)) {
    throw new OperatorError(
      `refusing to listen on ${config.host} without any token: make one with \`flywheel tokens create\` or pass --api-key`,
    );
  }
  return true;
}

/** Lets the printed example work without printing anybody's key: inference only, one hour, this process, loopback. */
function tryoutToken(config: Config, service: Service): RunningServer["token"] {
  if (config.uds !== null || !isLoopback(config.host)) return null;
  const secret = `fw_try_${randomBytes(16).toString("base64url")}`;
  const principal = { id: "tryout", name: "printed example", scopes: new Set(["inference"] as const) };
  service.auth.addKey(secret, principal, Date.now() + TRYOUT_SECONDS * 1000);
  return { secret, first: false };
}

/** What would be found out after minutes of reading weights. */
function checkAdapters(adapters: readonly { name: string; path: string }[]): void {
  for (const [i, { name, path }] of adapters.entries()) {
    if (adapters.findIndex((other) => other.name === name) < i) {
      throw new OperatorError(`--lora-modules has the name ${name} twice`);
    }
    if (!existsSync(join(path, "adapter_config.json"))) {
      throw new OperatorError(`--lora-modules ${name}: there is no adapter_config.json in ${path}`);
    }
  }
}

async function loadAdapters(service: Service, adapters: readonly { name: string; path: string }[]): Promise<void> {
  for (const { name, path } of adapters) {
    try {
      await service.adapters.load({ name, path, inPlace: false });
    } catch (error) {
      throw new OperatorError(`--lora-modules ${name}: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** NAME=PATH, or the JSON form with name and path. */
export function readLoraModule(text: string): { name: string; path: string } {
  if (text.trim().startsWith("{")) {
    try {
      const { name, path } = JSON.parse(text) as { name?: unknown; path?: unknown };
      if (typeof name === "string" && typeof path === "string" && name !== "" && path !== "") return { name, path };
    } catch (error) {
      throw new OperatorError(`--lora-modules: ${(error as Error).message}`, { cause: error });
    }
  } else {
    const split = text.indexOf("=");
    if (split > 0 && split < text.length - 1) return { name: text.slice(0, split), path: text.slice(split + 1) };
  }
  throw new OperatorError(`--lora-modules expects NAME=PATH or {"name":…,"path":…}, not ${text}`);
}
