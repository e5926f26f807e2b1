// One description of a route: who may call it, what it reads and what it answers. The server asks it for a token with the
// right scope, and openapi.json says the same of it (http/openapi.ts).

import type { Access } from "./http/auth.ts";
import type { RouteDescription } from "./http/openapi.ts";

/** A path that ends with, or contains, an id. */
export interface ById {
  Params: { id: string };
}

export type RouteShape = Omit<RouteDescription, "summary">;

/** Options of a route's registration. */
export function route(access: Access, summary: string, shape: RouteShape = {}) {
  return { config: { access, described: { summary, ...shape } } };
}
