// Requests to a server: JSON in and out, the server's error messages, and retries where they are safe.
// GET, DELETE and a POST with an idempotency key are retried after connection errors, 408, 409, 429 and 5xx. Any other POST
// is retried only after 429 and 503. Nothing is retried if the server says so (x-should-retry: false). The wait is
// Retry-After, or else doubles each time.

// A timer that a signal can end. Browsers have no node:timers.

/** Resolves after `ms`; rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

export interface ConnectionOptions {
  /** With or without /v1. */
  baseUrl: string;
  apiKey: string;
  /** Tries after the first. Default 4. */
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

/** How Chrome, Firefox and Safari say that a connection failed or broke. */
const BROWSER_FAULT = /^(failed to fetch|network ?error|load failed|error in input stream)/i;

/** True if the connection failed or broke. fetch throws a TypeError for both; Node gives it a cause, browsers do not. */
export function isConnectionFault(error: unknown): boolean {
  return error instanceof TypeError && (error.cause !== undefined || BROWSER_FAULT.test(error.message));
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
    // Not `fetch` itself: browsers refuse to call it as a method.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  async json<Answer>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const response = await this.request(method, path, options);
    return (await response.json()) as Answer;
  }

  /** Returns a successful response with its body unread. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    const repeatable = method !== "POST" || options.headers?.["idempotency-key"] !== undefined;
    for (let attempt = 0; ; attempt++) {
      const result = await this.#once(method, path, options).catch((error: unknown) => error as Error);
      if (result instanceof Response && result.ok) return result;
      options.signal?.throwIfAborted();
      const failure = result instanceof Response ? await failureOf(result) : result;
      if (attempt >= this.#maxRetries || !mayRepeat(result, repeatable)) throw failure;
      await sleep(waitMs(result, attempt), options.signal);
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

/** Milliseconds to wait after `attempt` earlier retries. */
export function backoffMs(attempt: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS);
}

function waitMs(result: Response | Error, attempt: number): number {
  const after = result instanceof Response ? Number(result.headers.get("retry-after") ?? Number.NaN) : Number.NaN;
  return Number.isFinite(after) ? after * 1000 : backoffMs(attempt);
}

async function failureOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // not JSON: keep the text
  }
  const message = (body as { error?: { message?: string } } | null)?.error?.message ?? text.slice(0, 500);
  return new ApiError(response.status, `${response.status}: ${message}`, body);
}
