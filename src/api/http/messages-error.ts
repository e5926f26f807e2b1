// Errors in the shape of Anthropic's API, for its routes.
import type { ServiceError } from "../../errors/service-error.ts";

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
