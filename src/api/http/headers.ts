// Headers that any request may carry: its id, its priority, its origin, its host.

import { isIP } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../../config/options.ts";
import { invalidValue, ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import { isLoopback } from "../../system/text.ts";

// The id of a request: the X-Request-Id header, else the body's request_id, else a random UUID. It becomes part of
// the reply's id and is returned in the X-Request-Id header, if it is valid there.

/** Every event of a stream repeats it. */
const LONGEST_ID = 1024;

/** An id that is safe to repeat in a header. */
const SAFE_ID = /^(?! )[\x20-\x7e]{1,256}(?<! )$/;

/** The id if it can be repeated in a header, else null. */
export function safeId(id: unknown): string | null {
  return typeof id === "string" && SAFE_ID.test(id) ? id : null;
}

export function requestIdOf(request: FastifyRequest, reply: FastifyReply, fromBody: string | undefined): string {
  if (fromBody === undefined || safeId(request.headers["x-request-id"]) !== null) return request.id;
  if (fromBody.length > LONGEST_ID) {
    throw invalidValue(`request_id may have at most ${LONGEST_ID} characters.`, "request_id");
  }
  if (safeId(fromBody) !== null) reply.header("x-request-id", fromBody);
  return fromBody;
}

// X-Vllm-Priority lets a proxy rank requests without touching their bodies. It overrides the body's `priority`. A value
// that is not an integer is ignored.
export function bodyWithPriority({ body, headers }: Pick<FastifyRequest, "body" | "headers">): unknown {
  const header = headers["x-vllm-priority"];
  if (!isJsonObject(body) || typeof header !== "string" || !/^[+-]?\d{1,20}$/.test(header)) return body;
  return { ...body, priority: header };
}

// Cross-origin access for browsers. Tokens travel in a header, never in cookies. So an open default gives a web page only
// what it already holds a token for.

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

// Refuses requests under foreign host names. A web page can point its own name at this address (DNS rebinding) and then
// counts as part of this server for the browser. It cannot do that with an IP address or localhost.
//
// On loopback, where only programs of this machine and its browsers call, every other name is refused. A server on another
// address is reached by names that only its operator knows, through proxies, services and DNS, so it accepts all of
// them until --allowed-hosts names them. A rebound page gets little there: every closed route needs a token, which
// travels in a header and never in a cookie.

/** A name or an address, maybe with a port. IPv6 addresses are in brackets. */
const HOST = /^(?:\[([\da-f:.]+)\]|([^\s:[\]/@]+))(?::\d{1,5})?$/i;

/** Whether a Host header names this server. */
export function hostCheck(
  config: Pick<Config, "allowedHosts" | "host" | "uds">,
): (host: string | undefined) => boolean {
  const { allowedHosts: allowed } = config;
  const isExposed = config.uds !== null || !isLoopback(config.host);
  if (allowed.includes("*") || (allowed.length === 0 && isExposed)) return () => true;
  return (host) => {
    const [, ipv6, other] = HOST.exec(host ?? "") ?? [];
    if (ipv6 !== undefined) return isIP(ipv6) === 6;
    if (other === undefined) return false;
    const name = other.toLowerCase().replace(/\.$/, "");
    if (isIP(name) === 4 || name === "localhost" || name.endsWith(".localhost")) return true;
    return allowed.some((one) => (one.startsWith("*.") ? name.endsWith(one.slice(1)) : name === one));
  };
}

export function misdirected(): ServiceError {
  const message =
    "This server does not answer under this host name: use its IP address or localhost, or start it with --allowed-hosts NAME.";
  return new ServiceError("misdirected_request", message);
}
