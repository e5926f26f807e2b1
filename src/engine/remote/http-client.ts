// HTTP to one replica, over connections that stay open between requests. Servers close idle ones after 5 s, so ours
// close first. A request on a reused connection that is reset before the first byte of its answer is sent once more.

import http from "node:http";
import https from "node:https";

/** uvicorn closes idle connections after 5 s. */
const IDLE_MS = 4000;

export interface Reply {
  status: number;
  text: string;
}

/** Events of one request, in this order: onHead, onData any number of times, then onEnd or onFailure. */
export interface ReplyReader {
  onHead(status: number): void;
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** The connection failed or closed early. */
  onFailure(error: Error): void;
}

export interface Call {
  /** Closes the connection. Nothing more is reported. Idempotent. */
  abort(): void;
}

interface Sent {
  method: "GET" | "POST";
  path: string;
  body: string | null;
}

export class HttpClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: http.Agent;
  readonly #module: typeof http | typeof https;

  /** `url` may have a path, as behind a proxy; /v1/… is added to it. */
  constructor(url: string, apiKey: string | null) {
    this.#base = new URL(url);
    this.#headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
    this.#module = this.#base.protocol === "https:" ? https : http;
    this.#agent = new this.#module.Agent({ keepAlive: true, timeout: IDLE_MS, noDelay: true });
  }

  post(path: string, body: string, reader: ReplyReader): Call {
    return this.#send({ method: "POST", path, body }, reader);
  }

  /** The whole reply. Rejects when there is none within `timeoutMs`, or with the reason of `signal` when it aborts. */
  whole(
    method: "GET" | "POST",
    path: string,
    { body = null, timeoutMs, signal }: { body?: unknown; timeoutMs?: number; signal?: AbortSignal },
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const why = () => (signal!.reason as Error).message;
      if (signal?.aborted) return reject(new Error(why()));
      const chunks: Buffer[] = [];
      let status = 0;
      const settle = (finish: () => void) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        finish();
      };
      const call = this.#send(
        { method, path, body: body === null ? null : typeof body === "string" ? body : JSON.stringify(body) },
        {
          onHead: (given) => {
            status = given;
          },
          onData: (bytes) => chunks.push(bytes),
          onEnd: () => settle(() => resolve({ status, text: Buffer.concat(chunks).toString() })),
          onFailure: (error) => settle(() => reject(error)),
        },
      );
      const stop = (why: string) => {
        call.abort();
        settle(() => reject(new Error(why)));
      };
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(() => stop(`no answer within ${timeoutMs / 1000} s`), timeoutMs);
      const onAbort = () => stop(why());
      signal?.addEventListener("abort", onAbort);
    });
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  #send(sent: Sent, reader: ReplyReader): Call {
    const attempt = { aborted: false };
    let request = this.#open(sent, reader, this.#agent, attempt, () => {
      request = this.#open(sent, reader, false, attempt, null);
    });
    return {
      abort: () => {
        attempt.aborted = true;
        request.destroy();
      },
    };
  }

  /** `retry`: what to do when a reused connection turns out to be closed. */
  #open(
    { method, path, body }: Sent,
    reader: ReplyReader,
    agent: http.Agent | false,
    attempt: { readonly aborted: boolean },
    retry: (() => void) | null,
  ): http.ClientRequest {
    let answered = false;
    let done = false;
    const fail = (error: Error) => {
      if (done || attempt.aborted) return;
      done = true;
      if (!answered && retry !== null && request.reusedSocket) retry();
      else reader.onFailure(error);
    };
    const request = this.#module.request({
      method,
      hostname: this.#base.hostname.replace(/^\[|\]$/g, ""),
      port: this.#base.port,
      path: this.#base.pathname.replace(/\/+$/, "") + path,
      agent,
      headers: {
        ...this.#headers,
        host: this.#base.host,
        ...(body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      },
    });
    request.on("error", fail);
    request.on("close", () => fail(new Error("the connection was closed")));
    request.on("response", (response) => {
      answered = true;
      if (attempt.aborted) return;
      reader.onHead(response.statusCode ?? 0);
      response.on("data", (bytes: Buffer) => {
        if (!attempt.aborted) reader.onData(bytes);
      });
      response.on("end", () => {
        if (done || attempt.aborted) return;
        done = true;
        reader.onEnd();
      });
      response.on("error", fail);
    });
    request.end(body);
    return request;
  }
}
