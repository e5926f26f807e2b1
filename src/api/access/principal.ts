// The caller as clients see it.
import { type Static, Type } from "typebox";
import { totalOf } from "../../store/tables/accounts.ts";
import { SCOPES } from "../../store/tokens.ts";
import type { AccountView } from "../../training/account.ts";
import type { Principal } from "../http/auth.ts";
import { nullable, orNull } from "../request/schema-parts.ts";

const principal = {
  object: Type.Literal("principal"),
  id: Type.String({ description: "Id of the token, or `key-N` for an --api-key." }),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  workspace: Type.Object({ id: Type.String(), name: Type.String() }),
  expires_at: nullable(Type.String({ format: "date-time" })),
  session: Type.Boolean({ description: "Whether this is the session of a browser." }),
};

export const PrincipalBody = Type.Object(principal, { title: "Principal" });

const bytes = (description?: string) => Type.Integer({ minimum: 0, ...(description ? { description } : {}) });

const StorageBody = Type.Object(
  {
    limit: bytes("--max-step-bytes"),
    used: bytes("The sum of all that follow."),
    steps: bytes(),
    deleted: bytes("Deleted steps and gradients whose files are still there."),
    open_jobs: bytes("Data of open jobs and operations, and what they will leave."),
    gradients: bytes("Gradients that wait for an optimizer step."),
    records: bytes("What jobs were trained on."),
    results: bytes("Reports, events and curves of jobs, and results of operations."),
    reserved: bytes("What is being written now."),
  },
  { title: "Storage", description: "In bytes." },
);

/** The caller, and what its workspace has on disk. */
export const MeBody = Type.Object(
  { ...principal, storage: orNull(StorageBody, { description: "null without training, or without its scope." }) },
  { title: "Me" },
);

export function presentStorage({ use, limit }: AccountView): Static<typeof StorageBody> {
  const { openJobs, ...rest } = use;
  return { limit, used: totalOf(use), open_jobs: openJobs, ...rest };
}

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
