// Starts and stops a server: data directory, tokens, model, HTTP. The caller gives the function that loads the model,
// so tests can serve a fake. The real one is in load-model.ts.
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { RouteGroup } from "../api/server.ts";
import { Service, type ServiceParts } from "../api/service.ts";
import { shownConfig } from "../config/load.ts";
import { sizeAndAge } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { createLog, type Log, LogTail } from "../observe/log.ts";
import { Metrics } from "../observe/metrics.ts";
import { lockDataDir, makeDataDir, openStore } from "../store/data-dir.ts";
import { SessionStore } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import { ConversationTable } from "../store/tables/conversations.ts";
import { ModelTable } from "../store/tables/models.ts";
import { ResponseTable } from "../store/tables/responses.ts";
import { SCOPES, TokenStore } from "../store/tokens.ts";
import { FIRST_WORKSPACE, keyWorkspace } from "../store/workspaces.ts";
import { isLoopback } from "../system/text.ts";
import { addressOf, listen, localAddressOf, tryAddress } from "./listen.ts";
import { LocalKeyKeeper } from "./local-access.ts";
import { checkLoraModules, loadLoraModules, readLoraModule } from "./lora-modules.ts";
import { openMcpServers } from "./mcp-servers.ts";
import { checkStorage } from "./storage.ts";

/** A loaded model: its engine and its text side. `close` frees everything but the engine. */
export interface LoadedModel
  extends Omit<
    ServiceParts,
    "config" | "tokens" | "sessions" | "responses" | "conversations" | "metrics" | "log" | "logTail" | "mcpServers"
  > {
  close(): Promise<void>;
}

/** `adaptersToCome`: options name adapters, or the data directory has trained steps, so adapters will be loaded soon. */
export type LoadModel = (config: Config, log: Log, metrics: Metrics, adaptersToCome: boolean) => Promise<LoadedModel>;

/** A part of the server beside serving, such as training. Made after the service, closed before the engine. */
export interface Extension {
  routes: RouteGroup;
  /** Called once the server listens. */
  listening?(url: string): Promise<void>;
  close(): Promise<void>;
}

export type CreateExtension = (service: Service, store: Store) => Promise<Extension>;

export interface StartedServer {
  service: Service;
  url: string;
  /** A token to show: the first one, made at this start, or one for trying out; null when neither was made. */
  token: { secret: string; first: boolean } | null;
  /** A link that opens the page signed in, once; null = there is no page here, or its address is not a loopback one. */
  link(): Promise<string | null>;
  /** Waits up to `shutdownTimeout` for running requests, then closes everything. */
  close(): Promise<void>;
}

/** How long the token in the printed curl line works. */
const TRYOUT_SECONDS = 3600;

/** How long connections may take to send their last bytes when the server stops. */
const LAST_BYTES_MS = 2000;

export interface StartOptions {
  /** Make a token for the operator if there is none. Default: true. */
  firstToken?: boolean;
}

export async function startServer(
  config: Config,
  loadModel: LoadModel,
  extensions: readonly CreateExtension[] = [],
  { firstToken = true }: StartOptions = {},
): Promise<StartedServer> {
  const logTail = new LogTail();
  const log = createLog({ level: config.logLevel, format: config.logFormat, also: (line) => logTail.add(line) });
  log.info("starting", shownConfig(config));
  const store = await openStore(config);
  const held: (() => void | Promise<void>)[] = [() => store.close()];
  const release = async () => {
    for (const give of held.splice(0).reverse()) await give();
  };
  try {
    // Without extensions the file holds only tokens, which servers may share. They may share a PostgreSQL database anyway.
    if (extensions.length > 0 && config.database === null) held.push(lockDataDir(config.data));
    return await start(config, loadModel, extensions, { log, logTail, store, firstToken, release });
  } catch (error) {
    await release();
    throw error;
  }
}

interface StartContext {
  log: Log;
  logTail: LogTail;
  store: Store;
  firstToken: boolean;
  release: () => Promise<void>;
}

async function start(
  config: Config,
  loadModel: LoadModel,
  extensions: readonly CreateExtension[],
  { log, logTail, store, firstToken, release }: StartContext,
): Promise<StartedServer> {
  const tokens = new TokenStore(store);
  const adapters = config.loraModules.map(readLoraModule);
  checkLoraModules(adapters);
  const mcpServers = config.role === "worker" ? null : await openMcpServers(config.mcpServer, log);
  const needsToken = (await lacksToken(config, tokens)) && firstToken;
  if (extensions.length > 0) await checkStorage(config, store);
  makeDataDir(config.data);
  await tryAddress(config);
  const metrics = new Metrics();
  const adaptersToCome = adapters.length > 0 || (await new ModelTable(store).hasTrainedSteps());
  // The HTTP framework loads while the engine does.
  const [model, { createServer }] = await Promise.all([
    loadModel(config, log, metrics, adaptersToCome),
    import("../api/server.ts"),
  ]);
  const sessions = new SessionStore(store);
  const responses = new ResponseTable(store, sizeAndAge(config.keepResponses));
  const conversations = new ConversationTable(store);
  const kept = { tokens, sessions, responses, conversations };
  const service = new Service({ ...model, ...kept, config, metrics, log, logTail, mcpServers });
  const opened: Extension[] = [];
  /** Closes every part, even when one fails; then throws the first failure. */
  const closeAll = async () => {
    const parts = [...opened.toReversed(), model.engine, model];
    const faults: unknown[] = [];
    for (const part of parts) await part.close().catch((error: unknown) => faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  let app: FastifyInstance | null = null;
  let first: string | null = null;
  let local: LocalKeyKeeper | null = null;
  try {
    for (const create of extensions) opened.push(await create(service, store));
    app = createServer(
      service,
      opened.map(({ routes }) => routes),
    );
    await loadLoraModules(service, adapters);
    await listen(app, config);
    for (const extension of opened) await extension.listening?.(addressOf(app, config));
    // Last, so that a failed start makes no token.
    if (needsToken) {
      const made = await tokens.createFirst({
        name: "first",
        scopes: SCOPES,
        lifetime: null,
        workspace: FIRST_WORKSPACE,
      });
      first = made?.secret ?? null;
    }
    if (config.role !== "worker") {
      const workspace = () => operatorWorkspace(config, tokens);
      local = new LocalKeyKeeper(tokens, { dataDir: config.data, url: localAddressOf(app, config), workspace }, log);
      await local.start();
    }
  } catch (error) {
    // Failures while closing would hide the reason.
    await app?.close().catch(() => {});
    await closeAll().catch(() => {});
    throw error;
  }
  const listening = app;
  const url = addressOf(listening, config);
  return {
    service,
    url,
    link: async () => {
      const isOpen = config.uds === null && isLoopback(config.host) && listening.hasRoute({ method: "GET", url: "/" });
      return isOpen ? `${url}/#code=${(await service.auth.createOperatorCode()).code}` : null;
    },
    token: first === null ? tryoutToken(config, service) : { secret: first, first: true },
    close: async () => {
      try {
        await service.drain(config.shutdownTimeout);
        await closeConnections(listening);
      } finally {
        await local?.close();
        await closeAll().finally(release);
      }
    },
  };
}

/** A connection still open after the drain belongs to a client that does not read or never finishes sending. */
async function closeConnections(app: FastifyInstance): Promise<void> {
  const force = setTimeout(() => app.server.closeAllConnections(), LAST_BYTES_MS);
  await app.close();
  clearTimeout(force);
}

/** Whether there is no token. Refuses to start on an open address without any token. */
async function lacksToken(config: Config, tokens: TokenStore): Promise<boolean> {
  if (config.role === "worker") return false; // nothing that it serves needs one
  if (config.apiKey.length > 0 || (await tokens.hasUsable())) return false;
  if (config.uds === null && !isLoopback(config.host)) {
    throw new OperatorError(
      `refusing to listen on ${config.host} without any token: make one with \`flywheel tokens create\` or pass --api-key`,
    );
  }
  return true;
}

/** Name of the workspace of whoever runs the server: of the first --api-key, or of the oldest admin token. */
async function operatorWorkspace(config: Config, tokens: TokenStore): Promise<string> {
  if (config.apiKey.length > 0) return keyWorkspace(0).name;
  return (await tokens.firstAdmin())?.workspace.name ?? FIRST_WORKSPACE;
}

/** Makes the printed example work without printing a real key: inference only, one hour, this process, loopback. */
function tryoutToken(config: Config, service: Service): StartedServer["token"] {
  if (config.role === "worker" || config.uds !== null || !isLoopback(config.host)) return null;
  const secret = `fw_try_${randomBytes(16).toString("base64url")}`;
  const workspace = { id: "tryout", name: "tryout", entity: "tryout" };
  const expiresAt = Math.floor(Date.now() / 1000) + TRYOUT_SECONDS;
  service.auth.addKey(secret, { id: "tryout", name: "printed example", scopes: ["inference"], workspace, expiresAt });
  return { secret, first: false };
}
