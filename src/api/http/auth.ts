// Who is calling, and may they? Tokens come from the store and from --api-key; both are compared by hash in constant
// time. Runs before a body is read. A route without an `access` setting is closed to everyone but admins.
import { timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import type { Owner } from "../../store/model-table.ts";
import { SCOPES, type Scope, sha256, type TokenStore } from "../../store/tokens.ts";
import { keyWorkspace, type Workspace } from "../../store/workspaces.ts";

/** "public": no token needed; "any": any valid token; a scope: that scope, or admin. */
export type Access = "public" | "any" | Scope;

export interface Principal {
  /** Token id, or `key-N` for the N-th --api-key. */
  id: string;
  name: string;
  scopes: ReadonlySet<Scope>;
  /** Owns what the caller makes. */
  workspace: Workspace;
}

interface StaticKey {
  hash: Buffer;
  principal: Principal;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

export class Authenticator {
  readonly #tokens: TokenStore;
  readonly #keys: StaticKey[] = [];

  constructor(tokens: TokenStore, apiKeys: readonly string[]) {
    this.#tokens = tokens;
    apiKeys.forEach((key, i) => {
      const workspace = keyWorkspace(i);
      this.addKey(key, { id: workspace.id, name: `--api-key #${i + 1}`, scopes: new Set(SCOPES), workspace });
    });
  }

  /** A key that lives in this process only. */
  addKey(secret: string, principal: Principal, expiresAt: number = Number.POSITIVE_INFINITY): void {
    this.#keys.push({ hash: sha256(secret), principal, expiresAt });
  }

  /** The caller named by an Authorization header; throws 401. */
  async authenticate(header: string | undefined): Promise<Principal> {
    const secret = /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
    if (secret === undefined) throw new ServiceError("missing_token", "Send the header `Authorization: Bearer TOKEN`.");
    const hash = sha256(secret);
    let found: Principal | null = null;
    for (const key of this.#keys) {
      if (timingSafeEqual(key.hash, hash) && key.expiresAt > Date.now()) found = key.principal;
    }
    const check = await this.#tokens.check(secret);
    // The store decides scopes, expiry and revocation of a token it knows, even if it was also given as --api-key.
    if (found !== null && !check.ok && check.why === "unknown") return found;
    if (!check.ok) {
      const reason = { unknown: "is not known here", expired: "has expired", revoked: "was revoked" }[check.why];
      throw new ServiceError("invalid_token", `The token ${reason}.`);
    }
    const { id, name, scopes, workspace } = check.token;
    return { id, name, scopes: new Set(scopes), workspace };
  }
}

/** Lets the caller pass or throws 403. */
export function authorize(principal: Principal, access: Access): void {
  if (access === "public" || access === "any" || principal.scopes.has(access) || principal.scopes.has("admin")) return;
  throw new ServiceError("insufficient_scope", `This route needs a token with the scope "${access}".`);
}

/** The caller of a closed route. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error(`route ${request.routeOptions.url} reads the caller but is public`);
  return request.principal;
}

/** Whose policies and jobs the caller sees: the caller's workspace, or those of all for an admin. */
export function readableBy({ scopes, workspace }: Principal): Owner {
  return scopes.has("admin") ? null : workspace.id;
}

export function isAdmin({ scopes }: Principal): boolean {
  return scopes.has("admin");
}

/** The challenge that goes with a 401 or 403. */
export function challenge(error: ServiceError): string | null {
  const realm = 'Bearer realm="flywheel"';
  if (error.code === "missing_token") return realm;
  if (error.code === "insufficient_scope") return `${realm}, error="insufficient_scope"`;
  return error.code === "invalid_token"
    ? `${realm}, error="invalid_token", error_description="${error.message}"`
    : null;
}

declare module "fastify" {
  interface FastifyContextConfig {
    access?: Access;
  }
  interface FastifyRequest {
    /** Set for every route that is not public. */
    principal: Principal | null;
  }
}
