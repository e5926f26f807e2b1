// Who calls, their sessions in a browser, and the tokens that admins manage.

import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { totalOf } from "../../store/tables/accounts.ts";
import { SCOPES, type TokenRecord } from "../../store/tokens.ts";
import { WORKSPACE_NAME } from "../../store/workspaces.ts";
import type { AccountView } from "../../training/account.ts";
import { credentialsOf, may, type Principal, principalOf } from "../http/auth.ts";
import { type ById, route } from "../route.ts";
import { Moment, nullable, orNull, readBody } from "../schema/body.ts";
import { afterId, listOf, page, pageOf } from "../schema/list.ts";
import type { Service } from "../service.ts";

// The caller as clients see it.

const principal = {
  object: Type.Literal("principal"),
  id: Type.String({ description: "Id of the token, or `key-N` for an --api-key." }),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  workspace: Type.Object({ id: Type.String(), name: Type.String() }),
  expires_at: nullable(Moment),
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
  {
    ...principal,
    storage: Type.Union([StorageBody, Type.Null()], { description: "null without training, or without its scope." }),
  },
  { title: "Me" },
);

function presentStorage({ use, limit }: AccountView): Static<typeof StorageBody> {
  const { openJobs, ...rest } = use;
  return { limit, used: totalOf(use), open_jobs: openJobs, ...rest };
}

function presentPrincipal(principal: Principal): Static<typeof PrincipalBody> {
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
function momentOf<T extends number | null>(seconds: T): T extends null ? null : string;
function momentOf(seconds: number | null): string | null {
  return seconds === null ? null : new Date(seconds * 1000).toISOString();
}

// Who the caller is, and how a browser signs in. A code in a link is exchanged once for the key of a session, which
// stands for whoever made the code.

const RedeemBody = Type.Object({ code: Type.String() }, { title: "RedeemSessionCode" });
/** Far more than a code needs: anybody may send one. */
const MOST_CODE_BYTES = 4096;

const SessionBody = Type.Object(
  {
    object: Type.Literal("session"),
    key: Type.String({ description: "To be sent as `Authorization: Bearer KEY`. Valid for 12 hours." }),
    expires_at: Moment,
    principal: PrincipalBody,
  },
  { title: "Session" },
);

export const CodeBody = Type.Object(
  {
    object: Type.Literal("session_code"),
    code: Type.String({ description: "Valid for 10 minutes, and once." }),
    url: Type.String({ description: "A link to the page, with the code in its fragment, which browsers do not send." }),
    expires_at: Moment,
  },
  { title: "SessionCode" },
);

export function registerSessions(app: FastifyInstance, service: Service): void {
  const { auth } = service;

  app.get(
    "/v1/me",
    route("any", "The caller, its scopes, its workspace and what that has on disk", { reply: MeBody }),
    async (request) => {
      const principal = principalOf(request);
      const account = may(principal, "training") ? await service.accountOf?.(principal.workspace.id) : undefined;
      return { ...presentPrincipal(principal), storage: account ? presentStorage(account) : null };
    },
  );

  app.post(
    "/v1/session-codes",
    route("any", "A one-time code that signs a browser in as the caller", { reply: CodeBody }),
    async (request) => {
      const { code, expiresAt } = await auth.createCode(principalOf(request));
      const url = `${request.protocol}://${request.host}/#code=${code}`;
      return { object: "session_code", code, url, expires_at: momentOf(expiresAt) };
    },
  );

  app.post(
    "/v1/sessions",
    {
      ...route("public", "Exchange a one-time code for the key of a session", {
        ...{ body: RedeemBody, reply: SessionBody, errors: [401] },
      }),
      bodyLimit: MOST_CODE_BYTES,
    },
    async (request) => {
      const { code } = readBody(RedeemBody, request.body).value;
      const { key, principal } = await auth.redeem(code);
      const shown = presentPrincipal(principal);
      return { object: "session", key, expires_at: shown.expires_at, principal: shown };
    },
  );

  app.delete(
    "/v1/sessions/current",
    route("any", "End the caller's session", { reply: null, errors: [404] }),
    async (request, reply) => {
      if (!principalOf(request).isSession) throw new ServiceError("no_session", "This key is a token, not a session.");
      await auth.endSession(credentialsOf(request));
      return reply.code(204).send();
    },
  );
}

// Tokens over HTTP, for admins: what `flywheel tokens` does on the server's machine.

const LONGEST_LIFETIME = 1000 * 365 * 86400;
const MOST_PER_PAGE = 100;
const Scopes = Type.Array(Type.Enum([...SCOPES]), { minItems: 1 });

const TokenBody = Type.Object(
  {
    object: Type.Literal("token"),
    id: Type.String(),
    name: Type.String(),
    scopes: Scopes,
    workspace: Type.String({ description: "Name of its workspace." }),
    created_at: Moment,
    expires_at: nullable(Moment),
    revoked_at: nullable(Moment),
    last_used_at: nullable(Type.String({ format: "date-time", description: "Within a minute." })),
  },
  { title: "Token" },
);

const CreatedBody = Type.Object(
  { ...TokenBody.properties, token: Type.String({ description: "Shown once." }) },
  { title: "CreatedToken" },
);

const TokenList = listOf(TokenBody, "TokenList");
const Page = pageOf(MOST_PER_PAGE);

const NewTokenBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128, pattern: String.raw`^[^\p{Cc}\p{Cs}]*$` }),
    scopes: Scopes,
    lifetime_s: orNull(Type.Integer({ minimum: 1, maximum: LONGEST_LIFETIME }), { description: "Default: for ever." }),
    workspace: orNull(Type.String({ pattern: WORKSPACE_NAME.source }), {
      description: "Name of its workspace, which is made if there is none. Default: one of its own.",
    }),
  },
  { title: "NewToken" },
);

export function registerTokens(app: FastifyInstance, { tokens }: Service): void {
  app.get(
    "/v1/tokens",
    route("admin", "List tokens, oldest first", { query: Page, reply: TokenList, errors: [400] }),
    async (request) => {
      const { after, limit } = readBody(Page, request.query).value;
      const count = limit ?? MOST_PER_PAGE;
      const found = afterId(await tokens.list(), after || null);
      return page(found.slice(0, count + 1), count, presentToken);
    },
  );

  app.post(
    "/v1/tokens",
    route("admin", "Create a token", { body: NewTokenBody, reply: CreatedBody }),
    async (request) => {
      const { name, scopes, lifetime_s, workspace } = readBody(NewTokenBody, request.body).value;
      const { secret, record } = await tokens.create({
        ...{ name, scopes: [...new Set(scopes)], lifetime: lifetime_s ?? null },
        ...(workspace ? { workspace } : {}),
      });
      return { ...presentToken(record), token: secret };
    },
  );

  app.delete<ById>(
    "/v1/tokens/:id",
    route("admin", "Revoke a token", { reply: null, errors: [400] }),
    async (request, reply) => {
      const { id } = request.params;
      if (await tokens.revokeById(id)) return reply.code(204).send();
      throw new ServiceError("unknown_token", `There is no token with the id ${id}.`);
    },
  );
}

function presentToken({ id, name, scopes, workspace, createdAt, expiresAt, revokedAt, lastUsedAt }: TokenRecord) {
  return {
    object: "token",
    ...{ id, name, scopes, workspace: workspace.name },
    created_at: momentOf(createdAt),
    expires_at: momentOf(expiresAt),
    revoked_at: momentOf(revokedAt),
    last_used_at: momentOf(lastUsedAt),
  };
}
