// Who the caller is, and how a browser signs in. A code in a link is exchanged once for the key of a session, which
// stands for whoever made the code.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { credentialsOf, may, principalOf } from "../http/auth.ts";
import { readBody } from "../request/read-body.ts";
import { ErrorBody } from "../request/schema-parts.ts";
import type { Service } from "../service.ts";
import { MeBody, momentOf, PrincipalBody, presentPrincipal, presentStorage } from "./principal.ts";

const RedeemBody = Type.Object({ code: Type.String() }, { title: "RedeemSessionCode" });
/** Far more than a code needs: anybody may send one. */
const MOST_CODE_BYTES = 4096;
const Moment = Type.String({ format: "date-time" });

const SessionBody = Type.Object(
  {
    object: Type.Literal("session"),
    key: Type.String({ description: "To be sent as `Authorization: Bearer KEY`. Valid for 12 hours." }),
    expires_at: Moment,
    principal: PrincipalBody,
  },
  { title: "Session" },
);

const CodeBody = Type.Object(
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
    {
      config: { access: "any" },
      schema: {
        summary: "The caller, its scopes, its workspace and what that has on disk",
        tags: ["access"],
        response: { 200: MeBody },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const account = may(principal, "training") ? await service.accountOf?.(principal.workspace.id) : undefined;
      return { ...presentPrincipal(principal), storage: account ? presentStorage(account) : null };
    },
  );

  app.post(
    "/v1/session-codes",
    {
      config: { access: "any" },
      schema: {
        summary: "A one-time code that signs a browser in as the caller",
        tags: ["access"],
        response: { 200: CodeBody },
      },
    },
    async (request) => {
      const { code, expiresAt } = await auth.createCode(principalOf(request));
      const url = `${request.protocol}://${request.host}/#code=${code}`;
      return { object: "session_code", code, url, expires_at: momentOf(expiresAt) };
    },
  );

  app.post(
    "/v1/sessions",
    {
      config: { access: "public" },
      bodyLimit: MOST_CODE_BYTES,
      schema: {
        summary: "Exchange a one-time code for the key of a session",
        tags: ["access"],
        security: [],
        body: RedeemBody,
        response: { 200: SessionBody, 401: ErrorBody },
      },
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
    {
      config: { access: "any" },
      schema: { summary: "End the caller's session", tags: ["access"], response: { 204: Type.Null(), 404: ErrorBody } },
    },
    async (request, reply) => {
      if (!principalOf(request).isSession) throw new ServiceError("no_session", "This key is a token, not a session.");
      await auth.endSession(credentialsOf(request));
      return reply.code(204).send();
    },
  );
}
