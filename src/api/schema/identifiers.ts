// Ids that cannot be: with U+0000, which JSON and paths may hold. PostgreSQL cannot even look for it, so it is refused where ids
// arrive, in the words of each dialect. Texts may have it.
import type { FastifyInstance } from "fastify";
import type { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import type { Loc } from "./scalars.ts";

/** The place begins with path, query or body. */
export type IdRefusal = (place: Loc) => ServiceError;

/** Fields of bodies that name something which may be in the database. */
const ID = /^(?:id|\w+_id|model|from_job)$/;

/** Checks the paths and queries of a scope's requests. */
export function refuseNulInPaths(scope: FastifyInstance, refusal: IdRefusal): void {
  scope.addHook("preHandler", async ({ params, query }) => {
    for (const [place, values] of Object.entries({ path: params, query })) {
      for (const [name, value] of Object.entries((values ?? {}) as object)) {
        if (hasNul(value)) throw refusal([place, name]);
      }
    }
  });
}

/** Checks the ids of a body, however deep they are. `bytes`: its text; null if it is not there any more. */
export function refuseNulInIds(body: unknown, bytes: Buffer | null, refusal: IdRefusal): void {
  if (bytes !== null && !bytes.includes("\\u0000")) return;
  const walk = (value: unknown, place: Loc): void => {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, [...place, index]);
    } else if (isJsonObject(value)) {
      for (const [name, item] of Object.entries(value)) {
        if (ID.test(name) && hasNul(item)) throw refusal([...place, name]);
        if (typeof item === "object") walk(item, [...place, name]);
      }
    }
  };
  walk(body, ["body"]);
}

function hasNul(value: unknown): boolean {
  return typeof value === "string" && value.includes("\0");
}
