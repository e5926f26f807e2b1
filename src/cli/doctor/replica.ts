// Talks to one replica over HTTP as the remote engine does: token ids to /v1/completions, every sampling field explicit.
// It trusts nothing in the replies: a reply without token ids is a ReplicaError, not a crash.
import { serverSentEvents } from "../../client/server-sent-events.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { encodeChat } from "../../text/prompt.ts";
import type { TextModel } from "../../text/text-model.ts";

/** What the replica answered that a check cannot work with. `status` is 0 when there was no answer. */
export class ReplicaError extends Error {
  override name = "ReplicaError";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export interface Answer {
  status: number;
  /** The parsed body, or its text if it is not JSON. */
  body: unknown;
}

/** One choice of /v1/completions. */
export interface Completion {
  tokenIds: number[];
  /** Log-probability of each generated token; empty if not asked for. */
  logprobs: number[];
  /** For each generated token, the log-probability of the sampled and the best ids. */
  top: Map<number, number>[];
  finishReason: string | null;
  stopReason: unknown;
  /** Log-probability of each prompt token; null for the first. null if not asked for. */
  promptLogprobs: (number | null)[] | null;
  /** null when the usage does not tell. */
  cachedTokens: number | null;
}

const TIMEOUT_MS = 120_000;

/** Neutral values for every field, so that no default of the replica applies. */
const NEUTRAL_FIELDS = {
  n: 1,
  max_tokens: 16,
  min_tokens: 0,
  temperature: 0,
  top_p: 1,
  top_k: 0,
  min_p: 0,
  repetition_penalty: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  stop: [],
  stop_token_ids: [],
  ignore_eos: true,
  logprobs: 0,
  return_token_ids: true,
  return_tokens_as_token_ids: true,
  skip_special_tokens: false,
};

export class Replica {
  /** Without a slash at the end, and without /v1. */
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, apiKey: string | null) {
    this.url = url.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.#headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  }

  get(path: string): Promise<Answer> {
    return this.#ask(path, { headers: this.#headers });
  }

  post(path: string, body: JsonObject): Promise<Answer> {
    return this.#ask(path, this.#posting(body));
  }

  /** Throws ReplicaError when the replica refuses or its reply has no token ids. */
  async complete(model: string, prompt: readonly number[], fields: JsonObject = {}): Promise<Completion> {
    const { status, body } = await this.post("/v1/completions", { ...NEUTRAL_FIELDS, model, prompt, ...fields });
    if (status !== 200) throw new ReplicaError(status, errorText(body));
    return readCompletion(body);
  }

  /** Yields the parsed events of a streamed completion. Breaking out of the loop closes the connection. */
  async *stream(model: string, prompt: readonly number[], fields: JsonObject = {}): AsyncGenerator<JsonObject> {
    const closing = new AbortController();
    const timer = setTimeout(() => closing.abort(), TIMEOUT_MS);
    try {
      const body = {
        ...NEUTRAL_FIELDS,
        model,
        prompt,
        stream: true,
        stream_options: { include_usage: true },
        ...fields,
      };
      const response = await this.#fetch("/v1/completions", { ...this.#posting(body), signal: closing.signal });
      if (response.status !== 200) throw new ReplicaError(response.status, errorText(parsed(await response.text())));
      for await (const { data } of serverSentEvents(response.body!)) {
        if (data === "[DONE]") return;
        const value = parsed(data);
        if (isJsonObject(value)) yield value;
      }
      throw new ReplicaError(200, "the stream ended without [DONE]");
    } finally {
      clearTimeout(timer);
      closing.abort();
    }
  }

  #posting(body: JsonObject): RequestInit {
    const headers = { ...this.#headers, "content-type": "application/json" };
    return { method: "POST", headers, body: JSON.stringify(body) };
  }

  async #ask(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.#fetch(path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { status: response.status, body: parsed(await response.text()) };
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const ask = () => fetch(this.url + path, init);
    try {
      // The server closes idle connections. A request that is just being sent on one does not arrive, and may be repeated.
      return await ask().catch((error) => (isReset(error) ? ask() : Promise.reject(error)));
    } catch (cause) {
      const { cause: deeper } = cause as Error;
      const reason = deeper instanceof Error && deeper.message !== "" ? deeper : (cause as Error);
      throw new ReplicaError(0, `${path}: ${reason.message}`, { cause });
    }
  }
}

function isReset({ cause }: Error): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ECONNRESET" || cause.code === "UND_ERR_SOCKET");
}

/** The token ids of one streamed event. */
export function deltaTokens(event: JsonObject): number[] {
  const choice = firstChoice(event);
  return isNumbers(choice?.token_ids) ? choice.token_ids : [];
}

export function finishOf(event: JsonObject): unknown {
  return firstChoice(event)?.finish_reason ?? null;
}

/** The message inside an error reply, or the start of whatever came. */
export function errorText(body: unknown): string {
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : body;
  const message = isJsonObject(error) ? (error.message ?? error.detail) : error;
  const text = typeof message === "string" ? message : (JSON.stringify(message) ?? "");
  return text.replaceAll(/\s+/g, " ").slice(0, 200);
}

function readCompletion(body: unknown): Completion {
  const choice = firstChoice(body);
  if (choice === null) throw new ReplicaError(200, "the reply has no choices");
  if (!isNumbers(choice.token_ids)) throw new ReplicaError(200, "the reply has no token ids");
  const logprobs = isJsonObject(choice.logprobs) ? choice.logprobs : {};
  const usage = isJsonObject(body) && isJsonObject(body.usage) ? body.usage : {};
  const details = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  return {
    tokenIds: choice.token_ids,
    logprobs: isNumbers(logprobs.token_logprobs) ? logprobs.token_logprobs : [],
    top: Array.isArray(logprobs.top_logprobs) ? logprobs.top_logprobs.map(readTop) : [],
    finishReason: typeof choice.finish_reason === "string" ? choice.finish_reason : null,
    stopReason: choice.stop_reason ?? null,
    promptLogprobs: Array.isArray(choice.prompt_logprobs) ? choice.prompt_logprobs.map(readPromptLogprob) : null,
    cachedTokens: typeof details.cached_tokens === "number" ? details.cached_tokens : null,
  };
}

/** {"token_id:42": -0.1, …} */
function readTop(value: unknown): Map<number, number> {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  return new Map(entries.map(([key, logprob]) => [Number(key.replace("token_id:", "")), Number(logprob)]));
}

/** {"42": {"logprob": -0.1, "rank": 1, …}}. The prompt's own token comes first. */
function readPromptLogprob(value: unknown): number | null {
  const first = isJsonObject(value) ? Object.values(value)[0] : null;
  return isJsonObject(first) && typeof first.logprob === "number" ? first.logprob : null;
}

function firstChoice(body: unknown): JsonObject | null {
  const choices = isJsonObject(body) && Array.isArray(body.choices) ? body.choices : [];
  return isJsonObject(choices[0]) ? choices[0] : null;
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => typeof item === "number");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// What every check works with: the replica, the model as Flywheel reads it, and a prompt.

export interface OurSide {
  text: TextModel;
  /** Possibly empty. */
  eosTokenIds: readonly number[];
  /** null for a model whose shape Flywheel does not know. */
  shape: ModelConfig | null;
  /** Largest number of log-probabilities that clients may ask for. */
  maxLogprobs: number;
  maxLoraRank: number;
  /** 0: unknown. */
  maxModelLen: number;
  /** The replica must see this folder under the same path. */
  data: string;
}

/** The base model of a replica. */
export interface ReplicaModel {
  name: string;
  maxModelLen: number;
  isFlywheel: boolean;
}

/** A model answers this at length. After a text that is no conversation it may say nothing but its end token. */
const QUESTION = "Tell me a story about a little robot that opens an old wooden door.";
/** How many log-probabilities the checks ask for. */
export const TOP = 5;

export class Bench {
  readonly replica: Replica;
  readonly ours: OurSide;
  readonly served: ReplicaModel;
  readonly prompt: readonly number[];
  #greedy: Promise<Completion> | null = null;

  private constructor(replica: Replica, ours: OurSide, served: ReplicaModel, prompt: readonly number[]) {
    this.replica = replica;
    this.ours = ours;
    this.served = served;
    this.prompt = prompt;
  }

  static async open(replica: Replica, ours: OurSide, served: ReplicaModel): Promise<Bench> {
    const { text } = ours;
    const prompt =
      text.defaultTemplate === null
        ? text.tokenizer.encode(QUESTION)
        : await encodeChat(text, { messages: [{ role: "user", texts: [QUESTION] }] });
    return new Bench(replica, ours, served, prompt);
  }

  /** 16 greedy tokens after the prompt, computed once. */
  greedy(): Promise<Completion> {
    this.#greedy ??= this.complete({ logprobs: TOP });
    return this.#greedy;
  }

  /** A request to the base model after the prompt. Greedy and with ignore_eos unless the fields say otherwise. */
  complete(fields: Readonly<Record<string, unknown>> = {}): Promise<Completion> {
    return this.replica.complete(this.served.name, this.prompt, fields);
  }
}
