// The id of a request: the X-Request-Id header, else the body's request_id, else a random UUID. It becomes part of
// the reply's id and is returned in the X-Request-Id header, if it is valid there.
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";

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
    throw new ServiceError("invalid_value", `request_id may have at most ${LONGEST_ID} characters.`, {
      param: "request_id",
    });
  }
  if (safeId(fromBody) !== null) reply.header("x-request-id", fromBody);
  return fromBody;
}
