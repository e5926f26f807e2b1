// GET /v1/server: what a client may want to know before its first request: the model, its limits and defaults, what is
// switched on, and how busy it is.

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { MAX_CHOICES } from "../generation/limits.ts";
import { route } from "../route.ts";
import { Moment, nullable } from "../schema/body.ts";
import type { Service } from "../service.ts";

const Count = Type.Integer();

export const ServerBody = Type.Object(
  {
    object: Type.Literal("server"),
    version: Type.String(),
    started_at: Moment,
    role: Type.Enum(["all", "api"]),
    model: Type.Object(
      {
        id: Type.String(),
        names: Type.Array(Type.String(), { description: "All names of the base model." }),
        context_length: Count,
        vocabulary: Count,
        parameters: nullable(Count),
        layers: nullable(Count),
        hidden_size: nullable(Count),
      },
      { description: "What only the server of --engine-url knows is null." },
    ),
    dtype: nullable(Type.String({ description: "Type of the weights in linear layers." })),
    threads: nullable(Count),
    requests: Type.Object(
      { running: Count, waiting: Count },
      { description: "Choices that are generated now, and those that wait for a slot." },
    ),
    limits: Type.Object({
      max_model_len: Count,
      max_num_seqs: Count,
      max_queue: Count,
      max_n: Count,
      max_logprobs: Type.Integer({ description: "-1 = the whole vocabulary." }),
      max_body_bytes: Count,
      max_training_body_bytes: Count,
      max_loras: Count,
      max_lora_rank: Count,
    }),
    sampling_defaults: Type.Object({
      temperature: Type.Number(),
      top_p: Type.Number(),
      top_k: Count,
      min_p: Type.Number(),
      repetition_penalty: Type.Number(),
      max_tokens: nullable(Count),
    }),
    parsers: Type.Object({
      tool_call: nullable(Type.String()),
      reasoning: nullable(Type.String()),
      auto_tool_choice: Type.Boolean(),
    }),
    features: Type.Object({
      training: Type.Boolean(),
      training_runs: Type.Boolean(),
      adapters: Type.Boolean(),
      prefix_cache: Type.Boolean(),
      structured_outputs: Type.Boolean(),
      priority: Type.Boolean(),
      request_chat_template: Type.Boolean(),
    }),
  },
  { title: "ServerInfo" },
);

export function registerServerInfo(app: FastifyInstance, service: Service): void {
  app.get(
    "/v1/server",
    route("any", "The server: its model, limits, defaults and features", { reply: ServerBody }),
    async () => describeServer(service),
  );
}

function describeServer(service: Service) {
  const { config, engine, models, facts, defaults, reasoning, toolFormat, startedAt, accountOf } = service;
  const { info } = engine;
  const { running, waiting } = engine.stats();
  return {
    object: "server",
    version: PACKAGE_VERSION,
    started_at: startedAt.toISOString(),
    role: config.role,
    model: {
      id: models.baseName,
      names: models.names,
      context_length: info.maxModelLen,
      vocabulary: info.vocabSize,
      parameters: facts.parameters,
      layers: facts.layers,
      hidden_size: facts.hiddenSize,
    },
    dtype: facts.weightType,
    threads: facts.threads,
    requests: { running, waiting },
    limits: {
      max_model_len: info.maxModelLen,
      max_num_seqs: config.maxNumSeqs,
      max_queue: config.maxQueue,
      max_n: MAX_CHOICES,
      max_logprobs: config.maxLogprobs,
      max_body_bytes: config.maxBodyBytes,
      max_training_body_bytes: config.maxTrainingBodyBytes,
      max_loras: info.maxLoras,
      max_lora_rank: info.maxLoraRank,
    },
    sampling_defaults: {
      temperature: defaults.temperature,
      top_p: defaults.topP,
      top_k: defaults.topK,
      min_p: defaults.minP,
      repetition_penalty: defaults.repetitionPenalty,
      max_tokens: defaults.maxNewTokens,
    },
    parsers: {
      tool_call: toolFormat,
      reasoning: reasoning === null ? null : config.reasoningParser,
      auto_tool_choice: config.enableAutoToolChoice,
    },
    features: {
      training: config.training && accountOf !== null && info.maxLoras > 0,
      training_runs: config.training && config.trainer === "onnx",
      adapters: info.maxLoras > 0,
      prefix_cache: config.enablePrefixCaching,
      structured_outputs: true,
      priority: info.policy === "priority",
      request_chat_template: config.trustRequestChatTemplate,
    },
  };
}
