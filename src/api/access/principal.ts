// The caller as clients see it.
import { type Static, Type } from "typebox";
import { SCOPES } from "../../store/tokens.ts";
import type { Principal } from "../http/auth.ts";
import { nullable } from "../request/schema-parts.ts";

export const PrincipalBody = Type.Object(
  {
    object: Type.Literal("principal"),
    id: Type.String({ description: "Id of the token, or `key-N` for an --api-key." }),
    name: Type.String(),
    scopes: Type.Array(Type.Enum([...SCOPES])),
    workspace: Type.Object({ id: Type.String(), name: Type.String() }),
    expires_at: nullable(Type.String({ format: "date-time" })),
    session: Type.Boolean({ description: "Whether this is the session of a browser." }),
  },
  { title: "Principal" },
);

export function presentPrincipal(principal: Principal): Static<typeof PrincipalBody> {
  const { id, name, scopes, workspace, expiresAt, isSession } = principal;
  return {
    object: "principal",
    id,
    name,
    scopes: SCOPES.filter((scope) => scopes.has(scope)),
    workspace: { id: workspace.id, name: workspace.name },
    expires_at: momentOf(expiresAt),
    session: isSession,
  };
}

/** Unix seconds as a date; null stays null. */
export function momentOf<T extends number | null>(seconds: T): T extends null ? null : string;
export function momentOf(seconds: number | null): string | null {
  return seconds === null ? null : new Date(seconds * 1000).toISOString();
}
