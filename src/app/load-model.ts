// Loads the model that a real server runs: finds the checkpoint, loads its text side, and starts the embedded engine or
// connects to engines on other machines.

import { loadSamplingDefaults } from "../api/generation/sampling.ts";
import type { ModelFacts } from "../api/service.ts";
import type { Config } from "../config/options.ts";
import type { Engine, ModelInfo } from "../engine/contract.ts";
import { StatCells } from "../engine/stats.ts";
import { OperatorError } from "../errors/faults.ts";
import type { ToolCallFormat } from "../grammar/constraint.ts";
import { GrammarService } from "../grammar/grammar-service.ts";
import { tokenVocabulary } from "../grammar/match/token-vocabulary.ts";
import { openCheckpoint } from "../model/checkpoint/checkpoint.ts";
import { GENERATION_FIELDS, readServedConfig } from "../model/checkpoint/config-files.ts";
import { type ModelConfig, readModelConfig } from "../model/checkpoint/model-config.ts";
import { NoAdapterSlot } from "../model/lora/adapter-host.ts";
import { readAdapter } from "../model/lora/adapter-reader.ts";
import { kernelsHere } from "../model/runtime-version.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { REPLY_MARKERS } from "../text/create-reply-parser.ts";
import { PromptError } from "../text/prompt-error.ts";
import { type ReasoningStyle, reasoningStyle } from "../text/reasoning.ts";
import type { Tokenizer } from "../text/tokenizer-contract.ts";
import { toolCallFormat } from "../text/tools/tool-format.ts";
import { blockOfLinks, createEmbeddedEngines, DEFAULT_WEIGHT_TYPE, parameterCount } from "./embedded-engine.ts";
import { createGpuEngine } from "./gpu-engine.ts";
import { BUNDLED_NAME, findModel, loadText } from "./model-files.ts";
import { connectEngines, type EngineParts, type StartedEngine } from "./remote-engines.ts";
import type { LoadedModel, LoadModel } from "./serve.ts";
import { torchDtype } from "./trainer.ts";
import { usableCores } from "./usable-cores.ts";

// What a worker without engines has instead of one. It knows the model, so that jobs can be prepared, and runs nothing:
// new steps are published without being loaded, and the servers that serve them load them when they are asked for.
export function idleEngine(info: ModelInfo): Engine {
  const nothing = new StatCells();
  return {
    info,
    generate: () => {
      throw new Error("a worker serves no requests");
    },
    loadAdapter: () => Promise.reject(new NoAdapterSlot("a worker without engines loads no adapters")),
    unloadAdapter: async () => {},
    stats: () => nothing.read(),
    healthy: () => true,
    close: async () => {},
  };
}

// Which parsers the replies of a model go through, by the options and its chat template.

type ParserConfig = Pick<Config, "enableAutoToolChoice" | "toolCallParser" | "reasoningParser">;

/** null: not parsed. */
export interface ReplyParsers {
  reasoning: ReasoningStyle | null;
  toolFormat: ToolCallFormat | null;
}

export function replyParsers(config: ParserConfig, chatTemplate: string | null): ReplyParsers {
  const { enableAutoToolChoice, toolCallParser } = config;
  if (toolCallParser !== null && !enableAutoToolChoice) {
    throw new OperatorError("--tool-call-parser has no effect without --enable-auto-tool-choice: give both");
  }
  return {
    reasoning: reasoningStyle(config.reasoningParser, chatTemplate),
    toolFormat: enableAutoToolChoice ? toolCallFormat(toolCallParser ?? "auto", chatTemplate) : null,
  };
}

/** Tables that old exports store and nobody reads: rotary frequencies, GPT-2's masks. */
const COMPUTED = /\.rotary_emb\.inv_freq$|\.attn\.(masked_)?bias$/;

/** How many unused tensors a warning names. */
const SHOWN_TENSORS = 5;

/** Throws an OperatorError for wrong options or a bad checkpoint. */
export const loadModel: LoadModel = async (config, log, metrics, adaptersToCome) => {
  try {
    return await load(config, log, metrics, adaptersToCome);
  } catch (error) {
    if (error instanceof PromptError) throw new OperatorError(error.message, { cause: error });
    // The engine thread reads the weights. Its errors arrive as causes and lose their class on the way.
    const { cause } = error as Error;
    if (cause instanceof Error && cause.name === "CheckpointError") {
      throw new OperatorError(cause.message, { cause: error });
    }
    throw error;
  }
};

async function load(config: Config, log: Log, metrics: Metrics, adaptersToCome: boolean): Promise<LoadedModel> {
  const isRemote = config.engineUrl.length > 0;
  if (isRemote && config.device !== "cpu") {
    throw new OperatorError(`--device ${config.device} is for an engine of this server; leave out --engine-url`);
  }
  if (isRemote && config.dataParallelSize !== 1) {
    throw new OperatorError("--data-parallel-size is for embedded engines; repeat --engine-url for several others");
  }
  const { folder, name } = await findModel(config, log, !isRemote);
  const own = isRemote ? null : readModelConfig(folder);
  const model = own ?? readServedConfig(folder);
  const text = await loadText(folder, config);
  const parsers = replyParsers(config, text.defaultTemplate);
  const idle = Object.keys(config.overrideGenerationConfig).filter((name) => !GENERATION_FIELDS.includes(name));
  if (idle.length > 0) log.warn("--override-generation-config has fields without effect", { fields: idle.join() });
  const defaults = loadSamplingDefaults({
    modelFolder: folder,
    configEosTokenIds: model.eosTokenIds,
    generationConfig: config.generationConfig,
    override: config.overrideGenerationConfig,
  });
  const grammars = new GrammarService({
    onCompiled: (ms) => metrics.grammarCompiled(ms / 1000),
    onIgnored: (keyword) => log.warn("a schema has a keyword that no draft knows; it has no effect", { keyword }),
  });
  const fleet = {
    queueTimeoutMs: config.queueTimeout * 1000,
    onFault: (error: Error) => log.error("engine fault", { error }),
    onState: (replica: string, state: string) => log.warn("an engine changed its state", { replica, state }),
  };
  if (own !== null && config.role !== "worker") warnOfUnusedTensors(folder, log);
  const { engine, checkpoint } =
    own === null
      ? await connectEngines(config, { folder, model, fleet, log })
      : config.role === "worker"
        ? withoutEngine(config, { folder, model: own })
        : await (config.device === "cpu" ? embedded : onGpu)(config, {
            ...{ folder, model: own, fleet, log, tokenizer: text.tokenizer, adaptersToCome },
          });
  return {
    engine,
    text,
    grammars,
    ...parsers,
    defaults,
    names: config.servedModelName.length > 0 ? [...new Set(config.servedModelName)] : [name],
    root: config.model === "bundled" ? BUNDLED_NAME : config.model,
    ...(checkpoint === null ? {} : { checkpoint }),
    ...(own === null ? {} : { facts: factsOf(config, folder, own) }),
    close: async () => {
      await grammars.close();
      await text.close();
    },
  };
}

interface EmbeddedParts extends EngineParts {
  model: ModelConfig;
  tokenizer: Tokenizer;
  adaptersToCome: boolean;
}

async function embedded(config: Config, parts: EmbeddedParts): Promise<StartedEngine> {
  const { folder, model, fleet, log } = parts;
  const weightType = config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype;
  const { kernels, detail } = await kernelsHere();
  log.info("loading the weights", { folder, dtype: weightType, kernels: `${kernels} (${detail})` });
  const engine = await createEmbeddedEngines({
    folder,
    engines: config.dataParallelSize,
    fleet: { ...fleet, readAdapter: (adapter) => readAdapter(adapter, model) },
    weightType,
    linkSize: config.blockSize,
    ...(config.threads === null ? {} : { threads: config.threads }),
    ...(config.kvCacheMemoryBytes === null ? {} : { kvCacheBytes: config.kvCacheMemoryBytes }),
    ...(config.maxModelLen === null ? {} : { maxModelLen: config.maxModelLen }),
    maxLoras: config.enableLora ? config.maxLoras : 0,
    maxLoraRank: config.maxLoraRank,
    adaptersFromStart: config.enableLora && parts.adaptersToCome,
    vocabulary: tokenVocabulary(parts.tokenizer, model.vocabSize, REPLY_MARKERS),
    scheduling: {
      maxNumSeqs: config.maxNumSeqs,
      policy: config.schedulingPolicy,
      prefixCaching: config.enablePrefixCaching,
      ...(config.maxNumBatchedTokens === null ? {} : { maxNumBatchedTokens: config.maxNumBatchedTokens }),
    },
    onFault: fleet.onFault,
  });
  return { engine, checkpoint: { folder, weightType } };
}

async function onGpu(config: Config, { folder, model, fleet, log, tokenizer }: EmbeddedParts): Promise<StartedEngine> {
  const { device, python } = config;
  log.info("starting the GPU engine", { folder, device, python, dtype: torchDtype(config) });
  const engine = await createGpuEngine(config, {
    folder,
    model,
    vocabulary: tokenVocabulary(tokenizer, model.vocabSize, REPLY_MARKERS),
    fleet: { ...fleet, readAdapter: (adapter) => readAdapter(adapter, model) },
  });
  // Not rounded: the trainers compute with the weights as they are stored.
  return { engine, checkpoint: { folder, weightType: "float32" } };
}

/** What the engines of other servers are, as far as training asks. */
function withoutEngine(config: Config, { folder, model }: { folder: string; model: ModelConfig }): StartedEngine {
  const engine = idleEngine({
    vocabSize: model.vocabSize,
    maxModelLen: Math.min(config.maxModelLen ?? model.maxPositions, model.maxPositions),
    positionsPerBlock: blockOfLinks(config.blockSize),
    cacheTokens: null,
    linkSize: config.blockSize,
    policy: config.schedulingPolicy,
    maxLoras: 0,
    maxLoraRank: config.maxLoraRank,
  });
  return { engine, checkpoint: { folder, weightType: config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype } };
}

function factsOf(config: Config, folder: string, model: ModelConfig): ModelFacts {
  return {
    parameters: parameterCount(folder),
    layers: model.numLayers,
    hiddenSize: model.hiddenSize,
    weightType:
      config.device !== "cpu" ? torchDtype(config) : config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype,
    threads: config.threads ?? usableCores(),
  };
}

/** Warns of weights that the model has no place for: config.json may belong to another model. */
function warnOfUnusedTensors(folder: string, log: Log): void {
  const checkpoint = openCheckpoint(folder);
  checkpoint.close();
  const unused = checkpoint.unused.filter((name) => !COMPUTED.test(name));
  if (unused.length === 0) return;
  const shown = unused.slice(0, SHOWN_TENSORS).join(", ");
  log.warn("the weights have tensors that the model does not use", { count: unused.length, first: shown });
}
