// A server with vLLM's routes, replies and quirks, without a model. The next token is a pure function of all tokens
// before it, so a request that goes on elsewhere must end up with the same ones.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export interface FakeVllmOptions {
  version?: string;
  vocabSize?: number;
  maxModelLen?: number;
  /** Refuses other priorities than 0, as without --scheduling-policy priority. */
  fcfs?: boolean;
  /** Milliseconds between two chunks. */
  pace?: number;
  /** Sizes in which the bytes of a stream are written, in turn. */
  pieces?: readonly number[];
  /** As without --enable-prompt-tokens-details. */
  hidesCachedTokens?: boolean;
  apiKey?: string;
}

export interface CompletionBody {
  model: string;
  prompt: number[];
  stream: boolean;
  max_tokens: number;
  min_tokens?: number;
  priority: number;
  logprobs: number | null;
  prompt_logprobs?: number | null;
  stop_token_ids?: number[];
  return_token_ids?: boolean;
  [field: string]: unknown;
}

/** Answers a completion in another way. Returns false to leave it to the fake. */
export type Prank = (body: CompletionBody, response: ServerResponse, number: number) => boolean;

export class FakeVllm {
  readonly completions: CompletionBody[] = [];
  readonly loads: { lora_name: string; lora_path: string }[] = [];
  readonly adapters = new Map<string, string>();
  /** Seconds since the last request on an adapter, as a Flywheel server tells. 0 if not given. */
  readonly idle = new Map<string, number>();
  /** Completions whose client closed the connection before the end. */
  aborted = 0;
  healthy = true;
  prank: Prank = () => false;
  /** Answers to loads, before the real ones. */
  loadErrors: { status: number; message: string }[] = [];
  startedAt = Date.now() / 1000;
  readonly #options: FakeVllmOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: FakeVllmOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.keepAliveTimeout = 5000; // uvicorn's
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(options: FakeVllmOptions = {}, port = 0): Promise<FakeVllm> {
    const fake = new FakeVllm(options);
    await new Promise<void>((resolve) => fake.#server.listen(port, "127.0.0.1", resolve));
    return fake;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Closes every connection without a word, as kill -9 does. */
  cutConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.cutConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The token after `tokens`. */
  nextToken(tokens: readonly number[]): number {
    let hash = 7;
    for (const token of tokens) hash = (hash * 31 + token + 1) % 1_000_003;
    return 3 + (hash % ((this.#options.vocabSize ?? 100) - 3));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { apiKey } = this.#options;
    const isOpen = ["/health", "/version", "/metrics"].includes(request.url!);
    if (apiKey !== undefined && !isOpen && request.headers.authorization !== `Bearer ${apiKey}`) {
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":"Unauthorized"}');
      return;
    }
    switch (request.url) {
      case "/health":
        response.writeHead(this.healthy ? 200 : 503).end();
        return;
      case "/version":
        return json(response, 200, { version: this.#options.version ?? "0.27.1+cpu" });
      case "/metrics":
        response.end(this.#metrics());
        return;
      case "/v1/models":
        return json(response, 200, { object: "list", data: this.#models() });
      case "/v1/engine":
        return json(response, 200, { adapters: [...this.#idleAdapters(), null] });
      case "/v1/load_lora_adapter":
        return this.#load(JSON.parse(text), response);
      case "/v1/unload_lora_adapter":
        this.adapters.delete(JSON.parse(text).lora_name);
        response.end("Success");
        return;
      case "/v1/completions":
        return this.#complete(JSON.parse(text), response);
      default:
        return json(response, 404, { detail: "Not Found" });
    }
  }

  #metrics(): string {
    return [
      "# HELP vllm:num_requests_running Number of requests in model execution batches.",
      'vllm:num_requests_running{engine="0",model_name="base"} 2.0',
      'vllm:num_requests_waiting{engine="0",model_name="base"} 1.0',
      'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",kv_cache_size_tokens="8192"} 1.0',
      'vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7e+09',
      `process_start_time_seconds ${this.startedAt}`,
      "",
    ].join("\n");
  }

  #models(): unknown[] {
    const base = { id: "base", object: "model", owned_by: "vllm", root: "/models/base", parent: null };
    const adapters = [...this.adapters].map(([id, root]) => ({
      ...base,
      id,
      root,
      parent: "base",
      max_model_len: null,
    }));
    return [{ ...base, max_model_len: this.#options.maxModelLen ?? 2048 }, ...adapters];
  }

  #idleAdapters(): unknown[] {
    return [...this.adapters.keys()].map((name) => ({ name, requests: 0, idle_seconds: this.idle.get(name) ?? 0 }));
  }

  #load(body: { lora_name: string; lora_path: string }, response: ServerResponse): void {
    this.loads.push(body);
    const failure = this.loadErrors.shift();
    if (failure !== undefined) {
      error(response, failure.status, failure.message);
    } else if (this.adapters.has(body.lora_name)) {
      const hint = "If you want to load the adapter in place, set 'load_inplace' to True.";
      error(response, 400, `The lora adapter '${body.lora_name}' has already been loaded. ${hint}`);
    } else {
      this.adapters.set(body.lora_name, body.lora_path);
      response.end(`Success: LoRA adapter '${body.lora_name}' added successfully.`);
    }
  }

  async #complete(body: CompletionBody, response: ServerResponse): Promise<void> {
    this.completions.push(body);
    response.on("close", () => {
      if (!response.writableFinished) this.aborted++;
    });
    if (this.prank(body, response, this.completions.length)) return;
    if (this.#options.fcfs && body.priority !== 0) {
      return error(response, 400, "Got priority 1 but Priority scheduling is not enabled.");
    }
    if (body.model !== "base" && !this.adapters.has(body.model)) {
      return error(response, 404, `The model \`${body.model}\` does not exist.`, "model");
    }
    if ((body.logprobs ?? 0) > 32) {
      const message = `Requested sample logprobs of ${body.logprobs}, which is greater than max allowed: 32 (parameter=logprobs, value=${body.logprobs})`;
      return error(response, 400, message, "logprobs");
    }
    const { tokens, finish } = this.#generate(body);
    const usage = {
      prompt_tokens: body.prompt.length,
      completion_tokens: tokens.length,
      ...(this.#options.hidesCachedTokens ? {} : { prompt_tokens_details: { cached_tokens: cachedOf(body) } }),
    };
    const choice = (ids: readonly number[], isLast: boolean) => ({
      index: 0,
      text: "ü".repeat(ids.length),
      logprobs: body.logprobs === null ? null : this.#logprobs(ids, body.logprobs),
      finish_reason: isLast ? finish.reason : null,
      stop_reason: isLast ? finish.stop : null,
      token_ids: body.return_token_ids ? ids : null,
    });
    const common = { id: "cmpl-1", object: "text_completion", created: 1, model: body.model };
    if (!body.stream) {
      const prompt_logprobs = body.prompt_logprobs == null ? null : this.#promptLogprobs(body);
      const kv = (body.kv_transfer_params as object | undefined) && { remote_block_ids: [1, 2] };
      const choices = [{ ...choice(tokens, true), prompt_logprobs }];
      return json(response, 200, { ...common, choices, usage, kv_transfer_params: kv ?? null });
    }
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    const events = tokens.map((id, i) => ({ ...common, choices: [choice([id], i === tokens.length - 1)] }));
    for (const event of [...events, { ...common, choices: [], usage }, null]) {
      await this.#write(response, `data: ${event === null ? "[DONE]" : JSON.stringify(event)}\n\n`);
      if (response.destroyed) return;
    }
    response.end();
  }

  async #write(response: ServerResponse, text: string): Promise<void> {
    const { pieces, pace } = this.#options;
    const bytes = Buffer.from(text);
    for (let at = 0, i = 0; at < bytes.length; i++) {
      const size = pieces === undefined ? bytes.length : pieces[i % pieces.length]!;
      response.write(bytes.subarray(at, at + size));
      at += size;
      if (pieces !== undefined) await new Promise((resolve) => setImmediate(resolve));
    }
    if (pace !== undefined) await new Promise((resolve) => setTimeout(resolve, pace));
  }

  #generate(body: CompletionBody): { tokens: number[]; finish: { reason: string; stop: number | null } } {
    const tokens: number[] = [];
    while (tokens.length < body.max_tokens) {
      const id = this.nextToken([...body.prompt, ...tokens]);
      tokens.push(id);
      if (body.stop_token_ids?.includes(id) && tokens.length >= (body.min_tokens ?? 0)) {
        return { tokens, finish: { reason: "stop", stop: id } };
      }
    }
    return { tokens, finish: { reason: "length", stop: null } };
  }

  #logprobs(ids: readonly number[], k: number): unknown {
    const top = (id: number) =>
      Object.fromEntries([
        [`token_id:${id}`, -1],
        ...Array.from({ length: k }, (_, i) => [`token_id:${(id + 1 + i) % 100}`, -2 - i] as const),
      ]);
    return {
      text_offset: ids.map(() => 0),
      token_logprobs: ids.map(() => -1),
      tokens: ids.map((id) => `token_id:${id}`),
      top_logprobs: ids.map(top),
    };
  }

  #promptLogprobs(body: CompletionBody): unknown {
    const entry = (logprob: number, rank: number) => ({ logprob, rank, decoded_token: "x" });
    return body.prompt.map((id, i) =>
      i === 0
        ? null
        : Object.fromEntries([[id, entry(-3, 7)], ...(body.prompt_logprobs === 0 ? [] : [[id + 1, entry(-1, 1)]])]),
    );
  }
}

/** A prefix cache that has seen everything but the last block. */
function cachedOf({ prompt }: CompletionBody): number {
  return Math.floor((prompt.length - 1) / 16) * 16;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function error(response: ServerResponse, status: number, message: string, param: string | null = null): void {
  json(response, status, { error: { message, type: "BadRequestError", param, code: status } });
}
