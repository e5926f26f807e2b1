// Everything a request handler needs, in one object. It is built once at start: by app/serve.ts for a real server, by the
// tests for one on fakes. There is no global state.
import { createHash } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../config/options.ts";
import { AdapterSlots } from "../engine/adapter-slots.ts";
import type { Engine } from "../engine/contract.ts";
import { replicaAlias } from "../engine/fleet/replica.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ToolCallFormat } from "../grammar/constraint.ts";
import type { GrammarService } from "../grammar/grammar-service.ts";
import type { WeightType } from "../model/linear/linear.ts";
import type { Log, LogTail } from "../observe/log.ts";
import type { EngineFacts, Metrics } from "../observe/metrics.ts";
import { Turns } from "../pacing/turns.ts";
import type { SessionStore } from "../store/sessions.ts";
import type { ConversationTable } from "../store/tables/conversations.ts";
import type { ResponseTable } from "../store/tables/responses.ts";
import type { TokenStore } from "../store/tokens.ts";
import { PACKAGE_VERSION } from "../system/package.ts";
import type { ReasoningStyle } from "../text/reasoning.ts";
import type { TextModel } from "../text/text-model.ts";
import { shownFormat } from "../text/tools/tool-format.ts";
import type { AccountView } from "../training/account.ts";
import { StoredMemory } from "./dialects/responses/conversation-room.ts";
import { Admission, shuttingDown } from "./generation/admission.ts";
import { LiveRequests } from "./generation/live-requests.ts";
import { LogprobMemory } from "./generation/logprob-memory.ts";
import { type EngineArgFields, leftOutArgs, type SamplingDefaults } from "./generation/sampling.ts";
import { AccessWatch, Authenticator, type Principal, principalOf } from "./http/auth.ts";
import { AdapterManager } from "./models/adapter-manager.ts";
import { ModelRegistry } from "./models/model-registry.ts";
import type { McpServers } from "./serving/mcp-servers.ts";

/** A model on the hub; anything else is a path, which clients must not see. */
const HUB_NAME = /^[\w.-]+\/[\w.-]+(@[\w./-]+)?$/;

/** Clients choose the names, so they are not named for ever. */
const MOST_TOLD_ARGS = 100;

/** What is served, and how text gets in and out of it. */
export interface ServiceParts {
  config: Config;
  engine: Engine;
  text: TextModel;
  grammars: Pick<GrammarService, "compile">;
  defaults: SamplingDefaults;
  /** How the model marks reasoning; null: it is not parsed. */
  reasoning: ReasoningStyle | null;
  /** How the model writes tool calls; null: they are not parsed. */
  toolFormat: ToolCallFormat | null;
  /** Names of the base model; the first is the one replies carry. */
  names: readonly string[];
  /** Where the weights come from, as model cards show it. */
  root: string;
  /** The checkpoint behind the engine, if it is on this machine. Training needs it. */
  checkpoint?: ServedCheckpoint;
  tokens: TokenStore;
  sessions: SessionStore;
  responses: ResponseTable;
  conversations: ConversationTable;
  metrics: Metrics;
  log: Log;
  /** The last lines of `log`. */
  logTail: LogTail;
  /** What is known of the model beyond what the engine says. */
  facts?: ModelFacts;
  /** Null: the operator lists none. */
  mcpServers?: McpServers | null;
}

/** null = not known here: other servers run the model. */
export interface ModelFacts {
  parameters: number | null;
  layers: number | null;
  hiddenSize: number | null;
  weightType: WeightType | "bfloat16" | null;
  /** CPU threads of the engine. */
  threads: number | null;
}

const NO_FACTS: ModelFacts = { parameters: null, layers: null, hiddenSize: null, weightType: null, threads: null };

export interface ServedCheckpoint {
  folder: string;
  /** As served. */
  weightType: WeightType;
}

export class Service {
  readonly config: Config;
  readonly engine: Engine;
  readonly text: TextModel;
  readonly grammars: ServiceParts["grammars"];
  readonly defaults: SamplingDefaults;
  readonly reasoning: ReasoningStyle | null;
  readonly toolFormat: ToolCallFormat | null;
  readonly log: Log;
  readonly logTail: LogTail;
  readonly auth: Authenticator;
  readonly access: AccessWatch;
  readonly tokens: TokenStore;
  /** Kept replies of the Responses API. */
  readonly responses: ResponseTable;
  readonly conversations: ConversationTable;
  /** What requests load of them. */
  readonly storedMemory: StoredMemory;
  readonly facts: ModelFacts;
  readonly mcpServers: McpServers | null;
  readonly startedAt = new Date();
  readonly models: ModelRegistry;
  readonly adapterSlots: AdapterSlots;
  readonly adapters: AdapterManager;
  readonly admission: Admission;
  readonly live = new LiveRequests();
  readonly logprobMemory = new LogprobMemory();
  /** Taken by every request before it is rendered and tokenised. */
  readonly turns = new Turns();
  readonly metrics: Metrics;
  /** What a workspace has on disk. Training adds it. */
  accountOf: ((workspace: string) => Promise<AccountView>) | null = null;
  /** The name of a step whose adapter is loaded from a folder, for who may see it. Training adds it. */
  stepName: ((folder: string, caller: Principal) => string | null) | null = null;
  /** Answers a browser that asks for an address without a page; null for anybody else. The web page adds it. */
  missingPage: ((request: FastifyRequest, reply: FastifyReply) => FastifyReply | null) | null = null;
  readonly systemFingerprint: string;
  readonly checkpoint: ServedCheckpoint | null;
  readonly #cut = new AbortController();
  /** Ids of clients. */
  readonly #toldAboutTools = new Set<string>();
  /** Parameters for engines that the log has named. */
  readonly #toldArgs = new Set<string>();

  constructor(parts: ServiceParts) {
    const { config, engine } = parts;
    this.config = config;
    this.engine = engine;
    this.text = parts.text;
    this.grammars = parts.grammars;
    this.defaults = parts.defaults;
    this.reasoning = parts.reasoning;
    this.toolFormat = parts.toolFormat;
    this.metrics = parts.metrics;
    this.log = parts.log;
    this.logTail = parts.logTail;
    this.checkpoint = parts.checkpoint ?? null;
    this.facts = parts.facts ?? NO_FACTS;
    this.mcpServers = parts.mcpServers ?? null;
    this.tokens = parts.tokens;
    this.responses = parts.responses;
    this.conversations = parts.conversations;
    this.storedMemory = new StoredMemory(config.maxBodyBytes);
    this.auth = new Authenticator(parts.tokens, parts.sessions, config.apiKey);
    this.access = new AccessWatch(this.auth);
    this.models = new ModelRegistry(parts.names, parts.root);
    this.adapterSlots = new AdapterSlots(engine);
    this.adapters = new AdapterManager(this.adapterSlots, this.models);
    this.admission = new Admission({ slots: slotsOf(parts), queue: config.maxQueue });
    setMaxListeners(0, this.#cut.signal); // every running request listens
    const setup = JSON.stringify([parts.root, config.dtype, engine.info]);
    this.systemFingerprint = `flywheel-${PACKAGE_VERSION}-${createHash("sha256").update(setup).digest("hex").slice(0, 8)}`;
  }

  /** Aborted when running requests must end now. */
  get cutSignal(): AbortSignal {
    return this.#cut.signal;
  }

  /** Logs what a request has and does not use: unknown fields, and parameters that no engine gets. */
  logIgnored(request: FastifyRequest, unknown: readonly string[], body: EngineArgFields): void {
    const leftOut = leftOutArgs(body, this.config.allowedEngineArgs);
    const fields = [...unknown, ...leftOut];
    if (fields.length === 0) return;
    this.log.debug("ignored fields", { id: request.id, count: fields.length, fields: firstNames(fields) });
    const fresh = this.config.engineUrl.length === 0 ? [] : firstNames(leftOut).filter((arg) => this.#isNews(arg));
    if (fresh.length === 0) return;
    const client = principalOf(request).name;
    const fix = "to pass them on: --allowed-engine-args";
    this.log.warn("parameters for engines are left out", { client, args: fresh.join(", "), fix });
  }

  /** Once for each: who sends one parameter for engines sends it with every request. */
  #isNews(arg: string): boolean {
    if (this.#toldArgs.has(arg) || this.#toldArgs.size >= MOST_TOLD_ARGS) return false;
    this.#toldArgs.add(arg);
    return true;
  }

  /** For the operator of a model that is told about tools while its calls are not parsed; null for any other. */
  get toolCallHint(): string | null {
    const { defaultTemplate } = this.text;
    const knowsTools = defaultTemplate !== null && this.text.rendersHere("tools", null, true);
    return this.toolFormat === null && knowsTools ? this.#toolHint : null;
  }

  /** How to start a server that parses the calls of this model. */
  get toolCommand(): string {
    const { model } = this.config;
    const named = model === "bundled" ? "" : ` ${HUB_NAME.test(model) ? model : "MODEL"}`;
    const parser = shownFormat(this.text.defaultTemplate) === null ? " --tool-call-parser NAME" : "";
    return `flywheel serve${named} --enable-auto-tool-choice${parser}`;
  }

  get #toolHint(): string {
    return `stay text in content; to parse them: ${this.toolCommand}`;
  }

  /** Once per client: many send tools without knowing that calls will stay text. */
  logUnparsedTools({ id, name }: Principal): void {
    if (this.toolFormat !== null || this.#toldAboutTools.has(id)) return;
    this.#toldAboutTools.add(id);
    this.log.warn("a client sends tools", { client: name, toolCalls: this.#toolHint });
  }

  /** Throws 503 when no request can be served. Requests to a fleet wait for a replica, so they are let in. */
  assertServing(): void {
    if (this.admission.draining) throw shuttingDown();
    if (this.engine.replicas === undefined) this.#assertHealthy();
  }

  /** Throws 503 when a request would fail or wait for a replica. */
  assertReady(): void {
    this.assertServing();
    this.#assertHealthy();
  }

  #assertHealthy(): void {
    if (this.engine.healthy()) return;
    if (this.engine.replicas === undefined) throw new ServiceError("engine_dead", "The engine is not running.");
    throw new ServiceError("engine_unavailable", "No engine is ready.");
  }

  /** Takes no new requests, waits for the running ones, cuts them after `timeout` seconds. */
  async drain(timeout: number): Promise<void> {
    this.admission.drain();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeout * 1000);
    });
    await Promise.race([this.admission.idle(), late]);
    clearTimeout(timer);
    if (this.admission.active > 0) {
      this.log.warn("cutting requests that did not finish in time", { choices: this.admission.active });
      this.#cut.abort();
      await this.admission.idle();
    }
  }
}

/** For the log: clients may send many names, of any length. */
function firstNames(names: readonly string[]): string[] {
  return names.slice(0, 10).map((name) => name.slice(0, 100));
}

/** Choices that run at once. */
function slotsOf({ engine, config }: ServiceParts): number {
  return engine.replicas?.().reduce((sum, { maxInFlight }) => sum + maxInFlight, 0) ?? config.maxNumSeqs;
}

export function engineFacts({ engine, config, models }: Service): EngineFacts {
  return {
    model: models.baseName,
    info: engine.info,
    stats: engine.stats(),
    replicas: engine.replicas?.() ?? [],
    prefixCaching: config.enablePrefixCaching,
    adapters: models.adapters().map((adapter) => adapter.name),
  };
}

/** In the order of --engine-url. Names may be addresses, so only admins see them. */
export function presentReplicas(
  replicas: readonly { name: string; state: string; inFlight: number }[],
  named: boolean,
) {
  return replicas.map(({ name, state, inFlight }, index) => ({
    name: named ? name : replicaAlias(index),
    ...{ state, in_flight: inFlight },
  }));
}
