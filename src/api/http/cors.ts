// Cross-origin access for browsers. Tokens travel in a header, never in cookies. So an open default gives a web page only
// what it already holds a token for.
import type { FastifyReply, FastifyRequest } from "fastify";

export function applyCors(request: FastifyRequest, reply: FastifyReply, allowed: readonly string[]): void {
  // Sent even if nothing is allowed: a cache must not give that answer to another page.
  if (!allowed.includes("*")) reply.header("vary", "origin");
  const origin = request.headers.origin;
  if (origin === undefined) return;
  if (!allowed.includes("*") && !allowed.includes(origin)) return;
  reply.header("access-control-allow-origin", allowed.includes("*") ? "*" : origin);
  reply.header("access-control-expose-headers", "x-request-id, retry-after, x-should-retry");
  if (isPreflight(request)) {
    reply.header("access-control-allow-methods", "GET, POST, DELETE, OPTIONS");
    reply.header("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "*");
    reply.header("access-control-max-age", "600");
  }
}

export function isPreflight(request: FastifyRequest): boolean {
  return request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
}
