// A real server over real HTTP on a fake model, for wire tests. The model obeys: after a message that contains
// "say:TEXT" it says TEXT and ends; otherwise it babbles, differently for every history. One token is one byte.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NEUTRAL_DEFAULTS } from "../../src/api/generation/sampling.ts";
import { createRemoteEngines } from "../../src/app/remote-engines.ts";
import { type CreateExtension, type LoadedModel, type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/options.ts";
import type { Engine } from "../../src/engine/contract.ts";
import { GrammarService } from "../../src/grammar/grammar-service.ts";
import { GrammarConstraintFactory } from "../../src/grammar/match/constraint-factory.ts";
import { tokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";
import { TextModel } from "../../src/text/text-model.ts";
import type { Tokenizer } from "../../src/text/tokenizer-contract.ts";
import { ByteTokenizer } from "./byte-tokenizer.ts";
import { FakeAdapters } from "./fake-adapters.ts";
import { FakeRunner, type FakeRunnerOptions, hashRow } from "./fake-runner.ts";
import { InProcessEngine } from "./in-process-engine.ts";

export const TEMPLATE =
  "{% if tools %}[tools]{{ tools | tojson }}\n{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}" +
  "{% if add_generation_prompt %}[assistant]{% endif %}";

export const API_KEY = "test-key";

export interface TestServerOptions {
  config?: Partial<Config>;
  model?: Partial<LoadedModel>;
  runner?: Partial<FakeRunnerOptions>;
  /** Adapter slots of the engine. */
  maxLoras?: number;
  templates?: ReadonlyMap<string, string>;
  /** tokenizer_config.json. */
  tokenizerConfig?: Readonly<Record<string, unknown>>;
  extensions?: readonly CreateExtension[];
  /** Instead of one token per byte. The model then babbles whatever it is told. */
  tokenizer?: Tokenizer;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into replies freely
export type Loose = any;

export type LooseResponse = Omit<Response, "json"> & { json(): Promise<Loose> };

/** `fetch` whose replies tests may look into without describing them. */
export const looseFetch = fetch as unknown as (url: string, init?: RequestInit) => Promise<LooseResponse>;

export interface TestServer extends StartedServer {
  runner: FakeRunner;
  /** POST with the test key; `body` as text is sent as it is. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<LooseResponse>;
  get(path: string, headers?: Record<string, string>): Promise<LooseResponse>;
  /** A chat request that must succeed. */
  chat(body: Record<string, unknown>): Promise<Loose>;
  /** The events of a streamed chat request, [DONE] left out. */
  stream(body: Record<string, unknown>, path?: string): Promise<Loose[]>;
}

/**
 * Set by the project "remote" of vitest.config.ts: every server then has its engine in a second one, as with
 * --engine-url, and must answer the same. Tests that look into the engine's own process are skipped there: its steps,
 * its counters, its death, and how a server closes its parts.
 */
const IS_REMOTE = process.env.FLYWHEEL_TEST_ENGINE === "remote";

/**
 * Set by whoever runs the project "remote" against another server, such as vLLM. It must obey as the fake model does,
 * take the key "test-key", and have the weights of test/fixtures/llama for adapters. Nothing of the fake runner applies.
 */
const ENGINE_URL = process.env.FLYWHEEL_TEST_ENGINE_URL;

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const config: Config = {
    ...loadConfig({ env: {} }),
    port: 0,
    data: mkdtempSync(join(tmpdir(), "flywheel-wire-")),
    apiKey: [API_KEY],
    logLevel: "error",
    shutdownTimeout: 2,
    maxNumSeqs: 8,
    ...options.config,
  };
  const tokenizer = options.tokenizer ?? new ByteTokenizer();
  let isUp = !IS_REMOTE; // the start of a remote engine runs the model
  const runner = new FakeRunner({
    row: options.tokenizer === undefined ? obeyingRow : hashRow,
    vocabSize: tokenizer.vocabSize,
    positionsPerBlock: 16,
    numBlocks: 512,
    maxPositions: 2048,
    ...options.runner,
    before: (chunks) => (isUp ? options.runner?.before?.(chunks) : undefined),
  });
  const model = async (engine: Engine): Promise<LoadedModel> => {
    const grammars = new GrammarService({ threads: 1 });
    const text = new TextModel({
      tokenizer,
      specialTokens: { bos_token: "<s>", eos_token: "</s>" },
      chatTemplates: options.templates ?? new Map([["default", TEMPLATE]]),
      tokenizerConfig: options.tokenizerConfig ?? {},
      longestToken: options.tokenizer === undefined ? 5 : 32,
      chatTemplateKwargs: config.defaultChatTemplateKwargs,
      literalControlTokens: config.literalControlTokens,
    });
    return {
      engine,
      text,
      grammars,
      defaults: NEUTRAL_DEFAULTS,
      reasoning: null,
      toolFormat: null,
      names: ["fake", "fake-alias"],
      root: "fakes/fake",
      close: async () => {
        await grammars.close();
        await text.close();
      },
      ...options.model,
    };
  };
  const embedded = () => {
    const constraints = new GrammarConstraintFactory(tokenVocabulary(tokenizer, tokenizer.vocabSize));
    return new InProcessEngine(
      { runner, adapters: new FakeAdapters(options.maxLoras), constraints },
      { scheduling: { maxNumSeqs: config.maxNumSeqs, policy: config.schedulingPolicy } },
    );
  };
  const needsHost = IS_REMOTE && ENGINE_URL === undefined;
  const engineHost = needsHost ? await startServer(engineConfig(config), () => model(embedded())) : null;
  const engineUrl = engineHost?.url ?? (IS_REMOTE ? ENGINE_URL : undefined);
  const engine = engineUrl === undefined ? embedded : () => remoteEngine(engineUrl, config, runner.vocabSize);
  const served = await startServer(config, async () => model(await engine()), options.extensions);
  isUp = true;
  Object.assign(runner, { forwards: 0, copies: 0, clears: 0, tokensRun: 0, largestStep: 0 });
  const server = { ...served, close: () => served.close().finally(() => engineHost?.close()) };
  const get = (path: string, headers: Record<string, string> = {}) =>
    looseFetch(server.url + path, { headers: { authorization: `Bearer ${API_KEY}`, ...headers } });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    looseFetch(server.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const stream = async (body: Record<string, unknown>, path = "/v1/chat/completions") => {
    const response = await post(path, { ...body, stream: true });
    return eventsOf(response.status, await response.text());
  };
  const chat = async (body: Record<string, unknown>) => {
    const response = await post("/v1/chat/completions", body);
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    return response.json();
  };
  return { ...server, runner, get, post, stream, chat };
}

/** The server behind a server. */
function engineConfig(config: Config): Config {
  const { maxNumSeqs, schedulingPolicy, logLevel } = config;
  const own = {
    port: 0,
    data: mkdtempSync(join(tmpdir(), "flywheel-wire-engine-")),
    apiKey: [API_KEY],
    maxLogprobs: -1,
  };
  return { ...loadConfig({ env: {} }), ...own, maxNumSeqs, schedulingPolicy, logLevel, shutdownTimeout: 0 };
}

async function remoteEngine(url: string, config: Config, vocabSize: number): Promise<Engine> {
  const { engine } = await createRemoteEngines({
    urls: [`${url},max=${config.maxNumSeqs}`],
    apiKey: API_KEY,
    front: "test",
    vocabSize,
    maxModelLen: Number.POSITIVE_INFINITY,
    maxLoras: 2,
    maxLoraRank: 8,
    fleet: {
      readAdapter: (folder) => new FakeAdapters(1).load(folder),
      queueTimeoutMs: 1000,
      prefixCaching: true,
      onFault: () => {},
    },
    times: { intervalMs: 500, silenceMs: 10_000 },
    onNotice: () => {},
  });
  return engine;
}

export function says(text: string): { role: string; content: string }[] {
  return [{ role: "user", content: `say:${text}` }];
}

function eventsOf(status: number, text: string): unknown[] {
  if (status !== 200) throw new Error(`status ${status}: ${text}`);
  const events = text.split("\n\n").filter((event) => event !== "");
  if (!events.every((event) => event.startsWith("data: ")) || events.at(-1) !== "data: [DONE]") {
    throw new Error(`not a complete event stream: ${text}`);
  }
  return events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
}

/** What comes after the last "say:" up to the end of its line, then the end-of-sequence token. */
function obeyingRow(tokens: Int32Array, adapters: Int32Array, out: Float32Array): void {
  hashRow(tokens, adapters, out);
  const bytes = Buffer.from(tokens);
  const order = bytes.lastIndexOf("say:");
  const end = order < 0 ? -1 : bytes.indexOf("\n[assistant]", order);
  if (order < 0 || end < 0) {
    out[2] = -30; // babbling has no end
    return;
  }
  const wanted = bytes.subarray(order + 4, end);
  const said = bytes.length - end - "\n[assistant]".length;
  out[said < wanted.length ? wanted[said]! : 2] = 30;
}
