// X-Vllm-Priority lets a proxy rank requests without touching their bodies. It overrides the body's `priority`. A value
// that is not an integer is ignored.

import type { FastifyRequest } from "fastify";
import { isJsonObject } from "../../json/json.ts";

export function bodyWithPriority({ body, headers }: Pick<FastifyRequest, "body" | "headers">): unknown {
  const header = headers["x-vllm-priority"];
  if (!isJsonObject(body) || typeof header !== "string" || !/^[+-]?\d{1,20}$/.test(header)) return body;
  return { ...body, priority: header };
}
