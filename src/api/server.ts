// The HTTP server: limits, request ids, authentication before any body is read, one shape for errors, and the routes.
// Each route file registers itself with a Service.
import { randomUUID } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { invalidValue, ServiceError } from "../errors/service-error.ts";
import { mostOpenFiles } from "../system/files.ts";
import { registerSessions, registerTokens } from "./access/access.route.ts";
import { registerChat, registerChatBatch, registerInvocations } from "./dialects/chat/chat.route.ts";
import { registerCompletions } from "./dialects/completions/completions.ts";
import { registerMessages } from "./dialects/messages/messages.route.ts";
import { registerResponses } from "./dialects/responses/responses.route.ts";
import { registerGenerate } from "./dialects/tokens/tokens.ts";
import { shuttingDown } from "./generation/admission.ts";
import { authorize, credentialsOf } from "./http/auth.ts";
import { limitUnread, parseJsonObject } from "./http/body.ts";
import { Connections } from "./http/connections.ts";
import { type Answer, answerClientError, notFound, sendError, toWireError } from "./http/errors.ts";
import { applyCors, hostCheck, isPreflight, misdirected, safeId } from "./http/headers.ts";
import { inPart, registerOpenApi } from "./http/openapi.ts";
import { cutStalledReader, leftWhileSending } from "./http/streams.ts";
import { registerLora, registerModels } from "./models/models.route.ts";
import { registerTokenize, registerTokenizerInfo } from "./models/tokenize.route.ts";
import { refuseNulInIds, refuseNulInPaths } from "./schema/identifiers.ts";
import type { Loc } from "./schema/scalars.ts";
import type { Service } from "./service.ts";
import { registerEngine } from "./serving/engine.route.ts";
import { registerInspect } from "./serving/inspect.route.ts";
import { registerMcp } from "./serving/mcp.route.ts";
import { registerLogs, registerOps } from "./serving/ops.route.ts";
import { registerServerInfo } from "./serving/server-info.route.ts";
import { registerWeb } from "./web.route.ts";

/** Time for a client to send its whole request; streams of output are not limited by it. */
const REQUEST_TIMEOUT_MS = 300_000;

/** How often late headers are looked for. */
const CHECK_MS = 1000;

/** Of the files that the system lets the process open: the rest is for the model, the data and other processes. */
const SHARE_OF_FILES = 0.75;

export type RouteGroup = (app: FastifyInstance, service: Service) => void;

/** By their part of the interface. */
type Parts = Readonly<Record<string, readonly RouteGroup[]>>;

const INFERENCE: Parts = {
  inference: [
    ...[registerChat, registerResponses, registerMessages, registerCompletions, registerGenerate],
    ...[registerChatBatch, registerInvocations],
  ],
  models: [registerModels, registerLora, registerTokenize, registerTokenizerInfo],
  tools: [registerMcp],
  access: [registerSessions, registerTokens],
  operations: [registerServerInfo, registerEngine, registerInspect, registerOps, registerLogs],
};

/** `more`: route groups beyond inference (training). A worker has only the routes for operators. */
export function createServer(service: Service, more: readonly RouteGroup[] = []): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: service.config.maxBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      headersTimeout: Math.min(Math.ceil(service.config.headerTimeout * 1000), REQUEST_TIMEOUT_MS),
      connectionsCheckingInterval: CHECK_MS,
    },
    forceCloseConnections: "idle",
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1024 },
    genReqId: (request) => safeId(request.headers["x-request-id"]) ?? randomUUID(),
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, _request, reply) => sendError(reply, toWireError(error)),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) => {
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding.trim().toLowerCase() !== "identity") {
      throw new ServiceError("unsupported_media_type", `Content-Encoding ${encoding} is not known here; send none.`);
    }
    const value = parseJsonObject(body);
    refuseNulInIds(value, body, nulInId);
    return value;
  });
  app.decorateRequest("principal", null);

  addHooks(
    app,
    service,
    notFound(app, (...args) => service.missingPage?.(...args) ?? null),
  );
  app.setErrorHandler((error, request, reply) => {
    const wire = toWireError(error);
    if (!service.admission.draining) {
      // The framework would close the connection after it refused a body. A client that is still sending would see a
      // broken connection instead of the answer. Left open, the rest of the body is read and thrown away.
      reply.removeHeader("connection");
    }
    if (leftWhileSending(request.raw, error)) return sendError(reply, wire); // nobody reads it
    if (wire.status === 500 || wire.code === "store_unavailable" || wire.code === "storage_unavailable") {
      const id = reply.getHeader("x-request-id");
      service.log.error("request failed", { id, url: request.routeOptions.url, error });
    }
    service.metrics.rejected(wire.code);
    return sendError(reply, wire);
  });

  registerOpenApi(app);
  const isWorker = service.config.role === "worker";
  const parts: Parts = isWorker
    ? { operations: [registerOps] }
    : { ...INFERENCE, page: service.config.ui ? [registerWeb] : [] };
  for (const [tag, groups] of Object.entries(parts)) {
    app.register(async (scope) => {
      inPart(scope, { tag });
      refuseNulInPaths(scope, nulInId);
      for (const group of groups) group(scope, service);
    });
  }
  app.register(async (scope) => {
    for (const group of isWorker ? [] : more) group(scope, service);
  });
  return app;
}

function nulInId(place: Loc): ServiceError {
  return invalidValue(`${place.slice(1).join(".")} must not contain U+0000.`, place.slice(1).join("."));
}

function mostConnections({ config, log }: Service): number {
  const possible = Math.floor(mostOpenFiles() * SHARE_OF_FILES);
  if (possible >= config.maxConnections) return config.maxConnections;
  log.warn("the system lets this process open few files, so it takes fewer connections", { connections: possible });
  return possible;
}

/** `nothingHere` answers before a body is read. */
function addHooks(app: FastifyInstance, service: Service, nothingHere: Answer): void {
  const isOurs = hostCheck(service.config);
  const connections = new Connections(app.server, mostConnections(service));
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (!isOurs(request.headers.host)) throw misdirected();
    applyCors(request, reply, service.config.allowedOrigins);
    if (isPreflight(request)) return reply.code(204).send();
    if (request.method === "OPTIONS") return nothingHere(request, reply); // says which methods a path has, to anybody
    if (request.is404 && !request.url.startsWith("/v1")) return nothingHere(request, reply);
    const access = request.routeOptions.config?.access ?? (request.is404 ? "any" : "admin");
    if (access === "public") return;
    connections.begin(request.raw, reply.raw);
    const principal = await service.auth.authenticate(credentialsOf(request));
    authorize(principal, access);
    request.principal = principal;
    if (service.admission.draining) {
      reply.header("connection", "close");
      throw shuttingDown();
    }
    if (request.is404) return nothingHere(request, reply);
  });
  app.addHook("preHandler", async (request, reply) => {
    // without a token, a request is in flight once its body is here
    if (request.principal === null) connections.begin(request.raw, reply.raw);
  });
  app.addHook("onSend", async (request, reply, payload) => {
    if (request.principal === null) limitUnread(request.raw);
    cutStalledReader(reply.raw, service.config.streamStallTimeout);
    return payload;
  });
  app.addHook("onResponse", async (request, reply) => {
    const handler = request.routeOptions.url ?? "none";
    service.metrics.httpResponse(request.method, handler, reply.statusCode);
    service.log.debug("response", {
      id: request.id,
      method: request.method,
      route: handler,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    });
  });
}
