// Every option of the server in one table. vLLM's name where vLLM has the option. The key in camelCase is the
// field of Config; the flag is its kebab-case (`--max-model-len`), the environment variable FLYWHEEL_MAX_MODEL_LEN,
// the YAML key max-model-len. docs/reference/flags.md and `--help` are made from this table.
import { homedir } from "node:os";
import { join } from "node:path";
import { flag, integer, json, list, type Option, oneOf, origins, seconds, secrets, text } from "./option.ts";

export const OPTIONS = {
  model: text(
    "Model",
    "bundled",
    "Folder of a Hugging Face checkpoint, org/name[@revision] of one in the HF cache or hub, or `bundled`.",
  ),
  servedModelName: list(
    "Model",
    [],
    "Name(s) under which the model is served; replies carry the first. Default: org/name, or the name of the folder.",
  ),
  revision: text("Model", null, "Branch, tag or commit to download."),
  downloadDir: text(
    "Model",
    null,
    "Hugging Face cache folder to use instead of the usual one (HF_HUB_CACHE, else hub in HF_HOME).",
    {
      placeholder: "DIR",
    },
  ),
  hfToken: text("Model", null, "Token for private models on the hub.", { secret: true, alsoEnv: ["HF_TOKEN"] }),
  generationConfig: text(
    "Model",
    "auto",
    "Where sampling defaults come from: `auto` (the model's generation_config.json), `vllm` (none), or a folder.",
  ),
  overrideGenerationConfig: json(
    "Model",
    'Sampling defaults that replace the model\'s, for example {"temperature":0.7}.',
  ),

  host: text("Server", "127.0.0.1", "Address to listen on. Anything but loopback needs a token to exist."),
  port: integer("Server", 8000, "Port to listen on; 0 picks a free one.", { min: 0, max: 65535 }),
  uds: text("Server", null, "Listen on a Unix socket instead of host and port.", { placeholder: "PATH" }),
  data: text("Server", join(homedir(), ".flywheel"), "Folder for the database and trained adapters.", {
    placeholder: "DIR",
  }),
  allowedOrigins: origins("Server", ["*"], "Origins that browsers may call from (CORS)."),
  shutdownTimeout: seconds(
    "Server",
    30,
    "After SIGTERM, how long running streams may take before they are cut; 0: not at all.",
  ),

  apiKey: secrets("Access", "Accept this token, with every scope, beside the stored ones. May be repeated.", {
    alsoEnv: ["VLLM_API_KEY"],
  }),

  chatTemplate: text("Chat", null, "File with (or text of) a Jinja chat template to use instead of the model's."),
  defaultChatTemplateKwargs: json("Chat", "Template variables for every request; a request's own win."),
  trustRequestChatTemplate: flag("Chat", true, "Accept chat_template in requests (rendered in a sandbox)."),
  reasoningParser: text(
    "Chat",
    "auto",
    "How reasoning is told from the answer: a parser's name (qwen3, deepseek_r1), `auto` (from the chat template) or `none`.",
  ),
  reasoningContentAlias: flag(
    "Chat",
    false,
    "Also send reasoning as reasoning_content, for clients that know only that name.",
  ),
  toolCallParser: text(
    "Chat",
    null,
    "Parse tool calls out of replies, one of hermes, qwen, llama3_json, llama4_json, pythonic.",
  ),
  enableAutoToolChoice: flag("Chat", false, "Allow tool_choice other than none; needs --tool-call-parser."),
  excludeToolsWhenToolChoiceNone: flag("Chat", false, "Do not show tools to the model when tool_choice is none."),
  returnTokensAsTokenIds: flag("Chat", false, "Default of return_tokens_as_token_ids."),
  enablePromptTokensDetails: flag("Chat", true, "Report cached prompt tokens in usage."),
  enableForceIncludeUsage: flag("Chat", false, "Send usage at the end of every stream."),

  dtype: oneOf("Engine", ["auto", "float32", "int8", "int4"], "auto", "Weights of the linear layers; auto: int8."),
  maxModelLen: integer(
    "Engine",
    null,
    "Context length: prompt plus output. Default: the model's own, or what the key/value cache holds if that is less.",
    { min: 2 },
  ),
  maxNumSeqs: integer("Engine", 32, "Choices that are generated at the same time.", { min: 1, max: 4096 }),
  maxNumBatchedTokens: integer(
    "Engine",
    null,
    "Tokens computed in one step, prompt chunks included. Default: 256, and 512 while nothing decodes (256 with one thread).",
    {
      min: 1,
    },
  ),
  blockSize: integer("Engine", 16, "Tokens that the prefix cache reuses together; a multiple of 16.", {
    min: 16,
    max: 256,
  }),
  kvCacheMemoryBytes: integer(
    "Engine",
    null,
    "Memory for the key/value cache. Default: a quarter of the machine's (or container's), at most 4 GiB.",
    { min: 1 },
    { placeholder: "BYTES" },
  ),
  enablePrefixCaching: flag("Engine", true, "Reuse computed prefixes between requests."),
  schedulingPolicy: oneOf(
    "Engine",
    ["priority", "fcfs"],
    "priority",
    "priority: lower `priority` first; fcfs: strictly by arrival, non-zero priorities are refused.",
  ),
  threads: integer("Engine", null, "CPU threads for model computation. Default: the cores it may use.", {
    min: 1,
    max: 1024,
  }),

  enableLora: flag(
    "Adapters",
    true,
    "Allow adapters to be served beside the base model; off also ends training and serving trained policies.",
  ),
  loraModules: list(
    "Adapters",
    [],
    'Adapters to load at start: NAME=PATH, or JSON {"name":…,"path":…}. May be repeated.',
    { objects: true },
  ),
  maxLoras: integer("Adapters", 4, "Adapters that can be loaded at the same time.", { min: 1, max: 256 }),
  maxLoraRank: integer("Adapters", 64, "Largest rank of an adapter.", { min: 1, max: 512 }),

  training: flag("Training", true, "Offer training jobs and serve trained policies; off also removes their routes."),
  trainingThreads: integer(
    "Training",
    null,
    "CPU threads of a training job. Default: --threads, else the cores it may use.",
    {
      min: 1,
      max: 1024,
    },
  ),
  trainingMemoryBytes: integer(
    "Training",
    2 * 2 ** 30,
    "Memory for the activations of a training job; sequences that do not fit are left out and reported.",
    { min: 2 ** 20 },
    { placeholder: "BYTES" },
  ),
  maxTrainingJobs: integer(
    "Training",
    2,
    "Jobs of different models that run at the same time. Each has a process that holds the weights once more, until 120 s after its last job.",
    { min: 1, max: 64 },
  ),
  maxOpenTrainingJobs: integer("Training", 10_000, "Waiting and running jobs of one token.", { min: 1 }),
  maxTrainingBodyBytes: integer(
    "Training",
    256 * 2 ** 20,
    "Largest body of a training request, unpacked; larger ones get 413.",
    { min: 1024 },
    { placeholder: "BYTES" },
  ),
  maxSteps: integer("Training", 1000, "Steps kept per model; beyond that the oldest unused ones are deleted.", {
    min: 1,
  }),
  maxStepBytes: integer(
    "Training",
    50 * 2 ** 30,
    "Disk for the steps of one token's models; beyond that new jobs get 429.",
    { min: 2 ** 20 },
    { placeholder: "BYTES" },
  ),
  loraRank: integer("Training", 8, "Rank of new models' adapters; at most --max-lora-rank.", { min: 1, max: 512 }),
  loraAlpha: integer("Training", 16, "Alpha of new models' adapters; alpha / rank scales them.", { min: 1 }),

  maxLogprobs: integer("Limits", 20, "Largest top_logprobs and prompt_logprobs; -1: the whole vocabulary.", {
    min: -1,
  }),
  maxQueue: integer("Limits", 1024, "Choices that may wait for a slot; beyond that requests get 429.", { min: 0 }),
  maxBodyBytes: integer(
    "Limits",
    4 * 2 ** 20,
    "Largest body of an inference request; larger ones get 413. Bodies are read on the main thread: 4 MiB take well under 0.1 s.",
    { min: 1024 },
    { placeholder: "BYTES" },
  ),
  streamBufferBytes: integer(
    "Limits",
    2 ** 20,
    "Output a stream may hold back for a client that reads too slowly; beyond that it is cut.",
    { min: 4096 },
    { placeholder: "BYTES" },
  ),
  streamStallTimeout: seconds(
    "Limits",
    60,
    "How long a client may not read at all before its stream is cut; 0: as soon as it falls behind.",
  ),

  logLevel: oneOf("Operation", ["debug", "info", "warn", "error"], "info", "Least important messages to log."),
  logFormat: oneOf("Operation", ["text", "json"], "text", "How log lines are written (to standard error)."),
} satisfies Record<string, Option<unknown>>;

export type OptionName = keyof typeof OPTIONS;

/** The effective settings of a server: one field per option. */
export type Config = { [K in OptionName]: (typeof OPTIONS)[K] extends Option<infer T> ? T : never };

export function flagName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function envName(name: string): string {
  return `FLYWHEEL_${flagName(name).replaceAll("-", "_").toUpperCase()}`;
}
