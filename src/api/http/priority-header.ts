// X-Vllm-Priority: a proxy in front of the service ranks requests without touching their bodies. It takes the place of the
// body's `priority`; a value that is no integer is ignored.

import type { FastifyRequest } from "fastify";
import { isJsonObject } from "../../json/json-object.ts";

export function bodyWithPriority({ body, headers }: Pick<FastifyRequest, "body" | "headers">): unknown {
  const header = headers["x-vllm-priority"];
  if (!isJsonObject(body) || typeof header !== "string" || !/^[+-]?\d{1,20}$/.test(header)) return body;
  return { ...body, priority: header };
}
