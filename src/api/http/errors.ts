// Errors → replies, in the words of each dialect.

import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ErrorCode } from "../../errors/error-table.ts";
import { errorEnvelope, ServiceError, toServiceError } from "../../errors/service-error.ts";
import { PromptError, type PromptErrorCode } from "../../text/prompt-error.ts";
import { challenge } from "./auth.ts";

// Errors of a chat that another dialect was translated into name the fields of that dialect.

/** `names`: a field of the chat → what the dialect calls it. Positions inside a field differ, so they are left out. */
export async function renameParams<T>(names: Readonly<Record<string, string>>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.param === null) throw error;
    const name = names[error.param.split(".", 1)[0]!];
    if (name === undefined) throw error;
    const { code, message, retryAfter, cause } = error;
    throw new ServiceError(code, message, { param: name, cause, ...(retryAfter === null ? {} : { retryAfter }) });
  }
}

// Maps text-layer errors to client errors. The text layer knows field names but not HTTP statuses.

const CODES: Record<PromptErrorCode, ErrorCode> = {
  invalid_message: "unsupported_content",
  invalid_part_type: "unsupported_content",
  invalid_stop: "invalid_value",
  invalid_bad_words: "invalid_value",
  invalid_truncation: "invalid_value",
  invalid_continuation: "invalid_combination",
  invalid_max_tokens: "context_length_exceeded",
  no_chat_template: "no_chat_template",
  template_error: "template_failed",
  template_busy: "queue_full",
  context_length_exceeded: "context_length_exceeded",
  text_too_long: "body_too_large",
  empty_prompt: "invalid_value",
};

/** Runs text-layer work and converts each PromptError to a client error. */
export async function asClientErrors<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PromptError)) throw error;
    const { param, message } = asTheDialectSays(error);
    throw new ServiceError(CODES[error.code], message, { param, cause: error });
  }
}

/** The wire dialect reports some fields under another name, or none. */
function asTheDialectSays({ code, param, message }: PromptError): Pick<PromptError, "param" | "message"> {
  if (code === "invalid_part_type") return { param: "type", message: `${param}: ${message}` };
  return { param: code === "invalid_bad_words" ? null : param, message };
}

// Errors in the shape of Anthropic's API, for its routes.

const TYPES = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
]);

export function messagesError({ status, message }: ServiceError, requestId: string | null) {
  const type = TYPES.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { type, message }, request_id: requestId };
}

// Turns everything that can go wrong at the HTTP edge into the error envelope: framework errors, unknown paths, wrong
// methods, broken connections. Stack traces and paths of this machine never leave the server.

/** Errors of the framework, by its code. */
const FRAMEWORK: Record<string, { code: ErrorCode; message: string }> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: "unsupported_media_type",
    message: "Unsupported or missing Content-Type: send application/json.",
  },
  FST_ERR_CTP_EMPTY_TYPE: { code: "unsupported_media_type", message: "Content-Type is empty: send application/json." },
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: "body_too_large",
    message: "The request body is larger than this server accepts.",
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: { code: "bad_http", message: "The body does not have the announced length." },
  FST_ERR_BAD_URL: { code: "not_found", message: "The URL is not valid." },
  FST_ERR_MAX_PARAM_LENGTH: { code: "not_found", message: "A part of the URL is too long." },
};

export function toWireError(thrown: unknown): ServiceError {
  const known = FRAMEWORK[(thrown as { code?: string } | null)?.code ?? ""];
  return known === undefined ? toServiceError(thrown) : new ServiceError(known.code, known.message, { cause: thrown });
}

/** `detail`: what FastAPI's clients look for. */
export function sendError(reply: FastifyReply, error: ServiceError, detail?: unknown): FastifyReply {
  reply.headers(errorHeaders(error));
  const { id, routeOptions } = reply.request;
  const body = routeOptions.config?.errors === "messages" ? messagesError(error, id) : errorEnvelope(error);
  const whole = detail === undefined ? body : { ...body, detail };
  return reply.code(error.status).type("application/json; charset=utf-8").send(whole);
}

function errorHeaders(error: ServiceError): Record<string, string> {
  const headers: Record<string, string> = {};
  const auth = challenge(error);
  if (auth !== null) headers["www-authenticate"] = auth;
  if (error.retryAfter !== null) headers["retry-after"] = String(error.retryAfter);
  // Clients repeat every 429 and 5xx by default.
  if (error.row.repeat === "useless") headers["x-should-retry"] = "false";
  return headers;
}

export type Answer = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/**
 * Makes the answer 404 or 405, in the envelope and with the `detail` that FastAPI clients look for. `page` answers browsers
 * where there is nothing.
 */
export function notFound(app: FastifyInstance, page: (...args: Parameters<Answer>) => FastifyReply | null): Answer {
  const routes: { method: string; pattern: RegExp }[] = [];
  app.addHook("onRoute", (route) => {
    const pattern = new RegExp(`^${route.url.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+").replace("*", ".*")}/?$`);
    for (const method of [route.method].flat()) routes.push({ method, pattern });
  });
  const answer: Answer = (request, reply) => {
    const path = request.url.split("?")[0]!;
    const allowed = routes.filter((route) => route.pattern.test(path)).map((route) => route.method);
    if (allowed.length === 0) {
      const shown = page(request, reply);
      if (shown !== null) return shown;
      const isRoute = (other: string) => routes.some(({ pattern }) => pattern.test(other));
      return sendError(reply, new ServiceError("not_found", whyNothing(path, isRoute)), "Not Found");
    }
    reply.header("allow", [...new Set(allowed)].join(", "));
    const error = new ServiceError("method_not_allowed", `${request.method} is not offered at this path.`);
    return sendError(reply, error, "Method Not Allowed");
  };
  app.setNotFoundHandler(answer);
  return answer;
}

/** The unknown paths that clients ask for most, because of an SDK's or another server's defaults. */
function whyNothing(path: string, isRoute: (path: string) => boolean): string {
  if (isRoute(`/v1${path}`)) return `There is nothing at this path: a client's base URL ends with /v1 here.`;
  if (/^(\/v1)?\/(embeddings|rerank|score|pooling)\b/.test(path)) {
    return "Embeddings are not offered: this server runs models that generate text, and their states are not trained to compare texts.";
  }
  if (path.startsWith("/api/")) {
    return "Ollama's API is not offered: use an OpenAI client with a base URL that ends with /v1.";
  }
  return "There is nothing at this path.";
}

/** Errors of Node's parser, by its code. */
const BROKEN: Record<string, readonly [ErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "The request headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "The request did not arrive in time."],
};

/** Bytes that are not HTTP, oversized headers, requests that never end: answer on the bare socket and close. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, message] = BROKEN[error.code ?? ""] ?? ["bad_http", "The request is not valid HTTP."];
  const wire = new ServiceError(code, message);
  const body = JSON.stringify(errorEnvelope(wire));
  socket.end(
    `HTTP/1.1 ${wire.status} ${wire.row.type}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
