// Requests to a server: JSON in and out, errors with the server's words, and another try where that is safe. GET and
// DELETE are repeated after connection faults and 408, 409, 429 and 5xx; POST only when the server said so (429, 503) or
// the request carries an idempotency key; nothing is repeated that the server calls useless (x-should-retry: false), a
// quota that is used up for one. Waits as long as Retry-After says, else longer each time.

import { setTimeout as sleep } from "node:timers/promises";

export interface ConnectionOptions {
  /** With or without /v1. */
  baseUrl: string;
  apiKey: string;
  /** Tries after the first one. */
  maxRetries?: number;
  fetch?: typeof fetch;
}

export class ApiError extends Error {
  readonly status: number;
  /** The parsed body, if it was JSON. */
  readonly body: unknown;

  constructor(status: number, message: string, body: unknown) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.body = body;
  }
}

export interface RequestOptions {
  body?: unknown;
  query?: Readonly<Record<string, string | number | null | undefined>>;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
}

/** Whether `error` says that there was no connection, or that it broke: fetch throws TypeErrors with a cause for both. */
export function isConnectionFault(error: unknown): boolean {
  return error instanceof TypeError && error.cause !== undefined;
}

const RETRIED = new Set([408, 409, 429]);
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8_000;

export class Connection {
  readonly #base: string;
  readonly #apiKey: string;
  readonly #maxRetries: number;
  readonly #fetch: typeof fetch;

  constructor(options: ConnectionOptions) {
    const base = options.baseUrl.replace(/\/+$/, "");
    this.#base = base.endsWith("/v1") ? base : `${base}/v1`;
    this.#apiKey = options.apiKey;
    this.#maxRetries = options.maxRetries ?? 4;
    this.#fetch = options.fetch ?? fetch;
  }

  async json<Answer>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const response = await this.request(method, path, options);
    return (await response.json()) as Answer;
  }

  /** A response with a status of success; its body is unread. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    const repeatable = method !== "POST" || options.headers?.["idempotency-key"] !== undefined;
    for (let attempt = 0; ; attempt++) {
      const result = await this.#once(method, path, options).catch((error: unknown) => error as Error);
      if (result instanceof Response && result.ok) return result;
      options.signal?.throwIfAborted();
      const failure = result instanceof Response ? await failureOf(result) : result;
      if (attempt >= this.#maxRetries || !mayRepeat(result, repeatable)) throw failure;
      await sleep(waitMs(result, attempt), undefined, { signal: options.signal });
    }
  }

  #once(method: string, path: string, { body, query = {}, headers, signal }: RequestOptions): Promise<Response> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    return this.#fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${this.#apiKey}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  }
}

function mayRepeat(result: Response | Error, repeatable: boolean): boolean {
  if (!(result instanceof Response)) return repeatable;
  const word = result.headers.get("x-should-retry");
  if (word !== null) return word === "true";
  if (result.status === 429 || result.status === 503) return true;
  return repeatable && (RETRIED.has(result.status) || result.status >= 500);
}

/** `attempt`: how many came before. */
export function longerEachTime(attempt: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS);
}

function waitMs(result: Response | Error, attempt: number): number {
  const after = result instanceof Response ? Number(result.headers.get("retry-after") ?? Number.NaN) : Number.NaN;
  return Number.isFinite(after) ? after * 1000 : longerEachTime(attempt);
}

async function failureOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // not JSON: the text is all there is
  }
  const message = (body as { error?: { message?: string } } | null)?.error?.message ?? text.slice(0, 500);
  return new ApiError(response.status, `${response.status}: ${message}`, body);
}
