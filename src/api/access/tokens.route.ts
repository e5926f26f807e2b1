// Tokens over HTTP, for admins: what `flywheel tokens` does on the server's machine.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { SCOPES, type TokenRecord } from "../../store/tokens.ts";
import { WORKSPACE_NAME } from "../../store/workspaces.ts";
import { readBody } from "../request/read-body.ts";
import { ErrorBody, nullable, orNull } from "../request/schema-parts.ts";
import type { Service } from "../service.ts";
import { momentOf } from "./principal.ts";

const LONGEST_LIFETIME = 1000 * 365 * 86400;
const MOST_PER_PAGE = 100;

const Moment = Type.String({ format: "date-time" });
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

const TokenList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(TokenBody),
    first_id: Type.String(),
    last_id: Type.String(),
    has_more: Type.Boolean(),
  },
  { title: "TokenList" },
);

const Page = Type.Object({
  after: orNull(Type.String(), { description: "The id of the last item seen." }),
  limit: orNull(Type.Integer({ minimum: 1, maximum: MOST_PER_PAGE }), { default: MOST_PER_PAGE }),
});

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
  const route = (schema: object) => ({ config: { access: "admin" as const }, schema: { tags: ["access"], ...schema } });

  app.get(
    "/v1/tokens",
    route({ summary: "List tokens, oldest first", querystring: Page, response: { 200: TokenList } }),
    async (request) => {
      const { after, limit } = readBody(Page, request.query).value;
      const all = await tokens.list();
      const from = after ? all.findIndex(({ id }) => id === after) + 1 || all.length : 0;
      const data = all.slice(from, from + (limit ?? MOST_PER_PAGE)).map(presentToken);
      const [first_id, last_id] = [data[0]?.id ?? "", data.at(-1)?.id ?? ""];
      return { object: "list", data, first_id, last_id, has_more: from + data.length < all.length };
    },
  );

  app.post(
    "/v1/tokens",
    route({ summary: "Create a token", body: NewTokenBody, response: { 200: CreatedBody, 400: ErrorBody } }),
    async (request) => {
      const { name, scopes, lifetime_s, workspace } = readBody(NewTokenBody, request.body).value;
      const { secret, record } = await tokens.create({
        ...{ name, scopes: [...new Set(scopes)], lifetime: lifetime_s ?? null },
        ...(workspace ? { workspace } : {}),
      });
      return { ...presentToken(record), token: secret };
    },
  );

  app.delete<{ Params: { id: string } }>(
    "/v1/tokens/:id",
    route({ summary: "Revoke a token", response: { 204: Type.Null(), 404: ErrorBody } }),
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
