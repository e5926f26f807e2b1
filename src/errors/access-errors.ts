// The errors of callers whom the server does not know, or who may not do what they ask.

import type { ErrorRow } from "./error-row.ts";

const UNAUTHORIZED = { status: 401, type: "AuthenticationError" } as const;

export const ACCESS_ERRORS = {
  missing_token: {
    ...UNAUTHORIZED,
    meaning: "The Authorization header is missing or does not have the form `Bearer TOKEN`.",
    fix: "Send `Authorization: Bearer TOKEN`. Create a token with `bin/flywheel tokens create`.",
  },
  invalid_token: {
    ...UNAUTHORIZED,
    meaning: "The token is unknown, revoked or expired.",
    fix: "Create a new token with `bin/flywheel tokens create`.",
  },
  invalid_code: {
    ...UNAUTHORIZED,
    meaning: "The one-time code is unknown, was used already, or is older than 10 minutes.",
    fix: "Run `bin/flywheel open` for a new link.",
  },
  no_session: {
    status: 404,
    type: "NotFoundError",
    meaning: "DELETE /v1/sessions/current was called with a token, which is no session.",
    fix: "Revoke a token with `bin/flywheel tokens revoke`.",
  },
  unknown_token: {
    status: 404,
    type: "NotFoundError",
    meaning: "No token has this id.",
    fix: "GET /v1/tokens lists the tokens.",
  },
  misdirected_request: {
    status: 421,
    type: "MisdirectedRequestError",
    meaning:
      "The Host header is missing, or is not a name of this server. A web page may have pointed its own name at this address.",
    fix: "Use the IP address or localhost, or start the server with `--allowed-hosts NAME`.",
  },
  insufficient_scope: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "The token is valid but lacks the scope that this route requires.",
    fix: "Use a token that has the scope named in the message.",
  },
  other_workspace: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "An admin asked to train, roll back or log to a model of another workspace.",
    fix: "Use a token of that workspace, made with `bin/flywheel tokens create --workspace NAME`. Or fork the model into your own.",
  },
} as const satisfies Record<string, ErrorRow>;
