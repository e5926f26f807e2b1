// Every server option, in one table. Options that vLLM has keep vLLM's names. A key such as `maxModelLen` is a field of
// Config, the flag `--max-model-len`, the variable FLYWHEEL_MAX_MODEL_LEN and the YAML key `max-model-len`.
// docs/reference/flags.md and `--help` are generated from this table.
import { homedir } from "node:os";
import { join } from "node:path";
import {
  engineArgNames,
  engineUrls,
  flag,
  hosts,
  integer,
  integerOrAuto,
  json,
  kept,
  list,
  mcpServers,
  type Option,
  oneOf,
  origins,
  postgresUrl,
  seconds,
  secrets,
  text,
} from "./option.ts";
import { TRAINING_OPTIONS } from "./training-options.ts";

export const OPTIONS = {
  model: text(
    "Model",
    "bundled",
    "Model to serve: a Hugging Face checkpoint folder, a GGUF file, org/name[@revision] on the hub, or `bundled`.",
  ),
  servedModelName: list(
    "Model",
    [],
    "Names that clients may use for the model. Replies carry the first. Default: org/name, or the name of the folder or file.",
  ),
  revision: text("Model", null, "Branch, tag or commit to download."),
  downloadDir: text("Model", null, "Hugging Face cache folder. Default: HF_HUB_CACHE, or the folder hub in HF_HOME.", {
    placeholder: "DIR",
  }),
  hfToken: text("Model", null, "Token for private models on the hub.", { secret: true, alsoEnv: ["HF_TOKEN"] }),
  generationConfig: text(
    "Model",
    "auto",
    "Source of sampling defaults: `auto` (the model's generation_config.json), `vllm` (none), or a folder.",
  ),
  overrideGenerationConfig: json(
    "Model",
    'Sampling defaults that override the model\'s, for example {"temperature":0.7}.',
  ),

  host: text("Server", "127.0.0.1", "Address to listen on. Any other than loopback needs a token first."),
  port: integer("Server", 8000, "Port to listen on; 0 picks a free one.", { min: 0, max: 65535 }),
  uds: text("Server", null, "Listen on a Unix socket instead of host and port.", { placeholder: "PATH" }),
  data: text("Server", join(homedir(), ".flywheel"), "Folder for the database and trained adapters.", {
    placeholder: "DIR",
  }),
  database: postgresUrl(
    "Server",
    "PostgreSQL database (15 or newer) that servers share, instead of a file in --data. Put its password into the environment: other users can read flags.",
  ),
  databaseListenUrl: postgresUrl(
    "Server",
    "The same database without a pooler. Needed when --database is PgBouncer in transaction mode, which has no LISTEN.",
  ),
  role: oneOf(
    "Server",
    ["all", "api", "worker"],
    "all",
    "Among servers that share a --database, `api` answers requests, `worker` runs training jobs, `all` does both.",
  ),
  ui: flag("Server", true, "Serve the web page at /."),
  allowedHosts: hosts(
    "Server",
    "Host names that requests may use besides IP addresses and localhost: NAME, *.NAME or *. By default any, but none on loopback.",
  ),
  allowedOrigins: origins("Server", ["*"], "Web origins that may call from a browser (CORS)."),
  shutdownTimeout: seconds("Server", 30, "How long streams may continue after SIGTERM."),

  enableTokenizerInfoEndpoint: flag(
    "Server",
    false,
    "Serve GET /tokenizer_info: the tokenizer's configuration and the chat template.",
  ),
  enableServerLoadTracking: flag("Server", true, "Count running requests at /load. If off, /load answers 0."),

  apiKey: secrets("Access", "Token to accept in addition to the stored ones. It has every scope. May be repeated.", {
    alsoEnv: ["VLLM_API_KEY"],
  }),

  chatTemplate: text("Chat", null, "Jinja chat template that replaces the model's: a file or the text itself."),
  chatTemplateContentFormat: oneOf(
    "Chat",
    ["auto", "string", "openai"],
    "auto",
    "How templates get the content of messages: as one string, as a list of parts (`openai`), or as they expect it (`auto`).",
  ),
  defaultChatTemplateKwargs: json(
    "Chat",
    "Template variables for every request. A request's own variables take precedence.",
  ),
  literalControlTokens: flag("Chat", false, "Control tokens spelt in messages stay text."),
  trustRequestChatTemplate: flag("Chat", true, "Accept chat_template in requests. It is rendered in a sandbox."),
  reasoningParser: text(
    "Chat",
    "auto",
    "How reasoning is told from the answer: think, qwen3, deepseek_r1, `auto` (by the chat template) or `none`.",
  ),
  reasoningContentAlias: flag(
    "Chat",
    false,
    "Also send reasoning as reasoning_content, for clients that expect that name.",
  ),
  toolCallParser: text(
    "Chat",
    null,
    "Format of tool calls, such as hermes, llama3_json or mistral. Default: by the chat template (`auto`).",
  ),
  enableAutoToolChoice: flag("Chat", false, "Parse tool calls, and allow tool_choice other than none."),
  enableOpenaiExtensions: flag(
    "Chat",
    false,
    "Accept what OpenAI's API has beyond vLLM's: custom tools, more values of reasoning_effort, and tool_choice allowed_tools.",
  ),
  mcpServer: mcpServers(
    "Chat",
    "MCP server over HTTP whose tools chats may use. May be repeated. Needs npm install @modelcontextprotocol/client.",
  ),
  excludeToolsWhenToolChoiceNone: flag("Chat", false, "Hide tools from the model when tool_choice is none."),
  returnTokensAsTokenIds: flag("Chat", false, "Default for return_tokens_as_token_ids."),
  enablePromptTokensDetails: flag("Chat", true, "Report cached prompt tokens in usage."),
  enableForceIncludeUsage: flag("Chat", false, "Send usage in every chunk and at the end of every stream."),

  keepResponses: kept(
    "Chat",
    "1Gi/30d",
    "How many replies of /v1/responses each workspace keeps: BYTES, DAYS (30d) or both. The least recently used go first. 0 keeps none.",
  ),

  device: oneOf<"cpu" | "cuda" | "cpu-torch">(
    "Engine",
    ["cpu", "cuda"],
    "cpu",
    "Where the model runs. cuda: on one GPU, in a Python process of this server's (docs/guides/one-gpu.md). Tested with torch on the processor, never run on a GPU.",
    // The Python process without a GPU, for tests.
    "cpu-torch",
  ),
  python: text("Engine", "python3", "Python with PyTorch for --device cuda: 3.11 or newer.", { placeholder: "PATH" }),
  gpuMemory: integer(
    "Engine",
    null,
    "Memory that --device cuda may take on the GPU, for example 24GB. Default: 90 % of what is free at the start.",
    { min: 1 },
    { placeholder: "BYTES" },
  ),
  dtype: oneOf(
    "Engine",
    ["auto", "float32", "int8", "int4"],
    "auto",
    "Type of the weights in linear layers. auto means int8, and bfloat16 with --device cuda.",
  ),
  maxModelLen: integer(
    "Engine",
    null,
    "Context length: prompt plus output. Default: the model's own, or what the key/value cache can hold if that is less.",
    { min: 2 },
  ),
  engineUrl: engineUrls(
    "Engine",
    "vLLM or Flywheel server that runs the model instead of the embedded engine: URL[,max=N]. N is the most choices to have there at once (256). May be repeated.",
  ),
  engineApiKey: text("Engine", null, "Key for the servers of --engine-url.", { secret: true }),
  engineTimeout: seconds(
    "Engine",
    10,
    "How long a server of --engine-url may be silent before its requests go on elsewhere.",
  ),
  allowedEngineArgs: engineArgNames(
    "Engine",
    "Member of kv_transfer_params, engine_xargs and extra_args that requests may pass to the servers of --engine-url. May be repeated. Others could make those servers talk to other machines.",
  ),
  dataParallelSize: integerOrAuto(
    "Engine",
    1,
    "Number of embedded engines, which share threads and cache. auto: by cores and the model's size.",
    { min: 1 },
  ),
  maxNumSeqs: integer("Engine", 32, "Most choices that an engine generates at the same time.", { min: 1, max: 4096 }),
  maxNumBatchedTokens: integer(
    "Engine",
    null,
    "Most tokens in one step. Default: 256; while nothing decodes, 512 with several threads and 1,024 with 16.",
    {
      min: 1,
    },
  ),
  blockSize: integer("Engine", 16, "Tokens that the prefix cache reuses together. A multiple of 16.", {
    min: 16,
    max: 256,
  }),
  kvCacheMemoryBytes: integer(
    "Engine",
    null,
    "Memory for the key/value cache. Default: a quarter of the machine's (or container's) memory, at most 4 GiB.",
    { min: 1 },
    { placeholder: "BYTES" },
  ),
  enablePrefixCaching: flag("Engine", true, "Reuse computed prefixes between requests of a workspace."),
  sharePrefixCache: flag(
    "Engine",
    false,
    "Reuse computed prefixes between workspaces too. Whoever guesses the beginning of a prompt then learns that somebody sent it.",
  ),
  schedulingPolicy: oneOf(
    "Engine",
    ["priority", "fcfs"],
    "priority",
    "priority: lower values run first. fcfs: order of arrival.",
  ),
  threads: integer("Engine", null, "CPU threads for model computation. Default: all cores the process may use.", {
    min: 1,
    max: 1024,
  }),

  enableLora: flag("Adapters", true, "Serve adapters beside the base model. If off, training is off too."),
  loraModules: list(
    "Adapters",
    [],
    'Adapters to load at start: NAME=PATH, or JSON {"name":…,"path":…}. May be repeated.',
    { objects: true },
  ),
  maxLoras: integer("Adapters", 4, "Most adapters loaded at the same time.", { min: 1, max: 256 }),
  maxLoraRank: integer("Adapters", 64, "Largest rank of an adapter.", { min: 1, max: 512 }),

  ...TRAINING_OPTIONS,

  maxLogprobs: integer("Limits", 20, "Largest top_logprobs and prompt_logprobs. -1 allows the whole vocabulary.", {
    min: -1,
  }),
  maxQueue: integer("Limits", 1024, "Most choices that may wait for a slot. Beyond that, requests get 429.", {
    min: 0,
  }),
  queueTimeout: seconds(
    "Limits",
    30,
    "How long a request waits while none of several engines is ready. Then it gets 503.",
  ),
  maxBodyBytes: integer(
    "Limits",
    4 * 2 ** 20,
    "Largest body of an inference request. Larger ones get 413.",
    { min: 1024 },
    { placeholder: "BYTES" },
  ),
  maxConnections: integer(
    "Limits",
    8192,
    "Most open connections; fewer where the system allows few open files. A new one takes the place of the one that is idle for longest.",
    { min: 16 },
  ),
  headerTimeout: seconds(
    "Limits",
    10,
    "How long a client may take for the headers of a request. 0: 300 s, as for all of it.",
  ),
  streamBufferBytes: integer(
    "Limits",
    2 ** 20,
    "Output that may wait for a slow reader before its stream is cut.",
    { min: 4096 },
    { placeholder: "BYTES" },
  ),
  streamStallTimeout: seconds(
    "Limits",
    60,
    "How long a client may stop reading before its stream is cut. 0 cuts it at once.",
  ),

  logLevel: oneOf("Operation", ["debug", "info", "warn", "error"], "info", "Lowest level to log."),
  logFormat: oneOf("Operation", ["text", "json"], "text", "Format of log lines. They go to standard error."),
} satisfies Record<string, Option<unknown>>;

export type OptionName = keyof typeof OPTIONS;

/** The effective settings of a server, one field per option. */
export type Config = { [K in OptionName]: (typeof OPTIONS)[K] extends Option<infer T> ? T : never };

export function flagName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function envName(name: string): string {
  return `FLYWHEEL_${flagName(name).replaceAll("-", "_").toUpperCase()}`;
}
