// Who is calling, and may they? Tokens come from the store and from --api-key, and a browser's session key stands for one
// of them. All are compared by hash. Runs before a body is read. A route without an `access` setting is closed to everyone
// but admins.
import { timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import {
  isSessionKey,
  operatorOf,
  type Session,
  type SessionCode,
  type SessionHolder,
  type SessionStore,
} from "../../store/sessions.ts";
import type { Owner } from "../../store/tables/models.ts";
import { SCOPES, type Scope, sha256, type TokenCheck, type TokenStore } from "../../store/tokens.ts";
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
  /** Unix seconds; null = never. */
  expiresAt: number | null;
  /** What a session of this caller stands for. */
  holder: SessionHolder;
  /** Whether the caller came with the key of a session. */
  isSession: boolean;
}

type KeyHolder = Pick<Principal, "id" | "name" | "workspace" | "expiresAt"> & { scopes: readonly Scope[] };

interface StaticKey {
  hash: Buffer;
  principal: Principal;
}

export class Authenticator {
  readonly #tokens: TokenStore;
  readonly #sessions: SessionStore;
  readonly #keys: StaticKey[] = [];

  constructor(tokens: TokenStore, sessions: SessionStore, apiKeys: readonly string[]) {
    this.#tokens = tokens;
    this.#sessions = sessions;
    apiKeys.forEach((key, i) => {
      const workspace = keyWorkspace(i);
      this.addKey(key, { id: workspace.id, name: `--api-key #${i + 1}`, scopes: SCOPES, workspace, expiresAt: null });
    });
  }

  /** A key that lives in this process only. */
  addKey(secret: string, { scopes, ...who }: KeyHolder): void {
    const hash = sha256(secret);
    const holder = { kind: "key", keyHash: hash.toString("hex") } as const;
    this.#keys.push({ hash, principal: { ...who, scopes: new Set(scopes), holder, isSession: false } });
  }

  /** The caller named by an Authorization header; throws 401. */
  async authenticate(header: string | undefined): Promise<Principal> {
    const secret = bearerOf(header);
    if (secret === null) throw new ServiceError("missing_token", "Send the header `Authorization: Bearer TOKEN`.");
    if (isSessionKey(secret)) return this.#ofSession(await this.#sessions.check(secret));
    const found = this.#keyWith(sha256(secret));
    const check = await this.#tokens.check(secret);
    // The store decides scopes, expiry and revocation of a token it knows, even if it was also given as --api-key.
    if (found !== null && !check.ok && check.why === "unknown") return found;
    return ofToken(check);
  }

  /** A one-time code for a session that stands for the caller and ends no later than the caller's token. */
  createCode({ holder, expiresAt }: Principal): Promise<SessionCode> {
    return this.#sessions.createCode(holder, expiresAt ?? undefined);
  }

  /** A one-time code for whoever runs the server: as the first --api-key, or as the data says. */
  async createOperatorCode(): Promise<SessionCode> {
    const key = this.#keys.find(({ principal }) => isAdmin(principal));
    return this.#sessions.createCode(key?.principal.holder ?? (await operatorOf(this.#tokens)));
  }

  /** Exchanges a one-time code; throws 401. */
  async redeem(code: string): Promise<{ key: string; principal: Principal }> {
    const session = await this.#sessions.redeem(code);
    if (session) return { key: session.key, principal: await this.#ofSession(session) };
    throw new ServiceError("invalid_code", "The code is unknown, was used already, or is older than 10 minutes.");
  }

  /** Ends the session whose key is in an Authorization header. */
  async endSession(header: string | undefined): Promise<void> {
    await this.#sessions.end(bearerOf(header) ?? "");
  }

  async #ofSession(session: Session | null): Promise<Principal> {
    const principal = session && (await this.#held(session.holder));
    if (!principal) throw new ServiceError("invalid_token", "The session is over: sign in again.");
    const expiresAt = Math.min(session.expiresAt, principal.expiresAt ?? Number.POSITIVE_INFINITY);
    return { ...principal, expiresAt, isSession: true };
  }

  /** null = what the session stands for is not valid any more. */
  async #held(holder: SessionHolder): Promise<Principal | null> {
    if (holder.kind === "key") return this.#keyWith(Buffer.from(holder.keyHash, "hex"));
    if (holder.kind === "token") {
      const check = await this.#tokens.checkId(holder.tokenId);
      return check.ok ? ofToken(check) : null;
    }
    const workspace = await this.#tokens.workspace(holder.workspace);
    const who = { id: "operator", name: "operator", scopes: new Set(SCOPES), workspace };
    return { ...who, expiresAt: null, holder, isSession: true };
  }

  /** Compares with every key, so that timing does not tell which one it was. */
  #keyWith(hash: Buffer): Principal | null {
    let found: Principal | null = null;
    for (const { hash: known, principal } of this.#keys) {
      const isAlive = principal.expiresAt === null || principal.expiresAt > Date.now() / 1000;
      if (timingSafeEqual(known, hash) && isAlive) found = principal;
    }
    return found;
  }
}

/** The Authorization header; clients of Anthropic's API send their token as x-api-key. */
export function credentialsOf({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  const key = headers["x-api-key"];
  return headers.authorization ?? (typeof key === "string" ? `Bearer ${key}` : undefined);
}

function bearerOf(header: string | undefined): string | null {
  return /^bearer +(\S+) *$/i.exec(header ?? "")?.[1] ?? null;
}

function ofToken(check: TokenCheck): Principal {
  if (check.ok) {
    const { id, name, scopes, workspace, expiresAt } = check.token;
    const holder = { kind: "token", tokenId: id } as const;
    return { id, name, scopes: new Set(scopes), workspace, expiresAt, holder, isSession: false };
  }
  const reason = { unknown: "is not known here", expired: "has expired", revoked: "was revoked" }[check.why];
  throw new ServiceError("invalid_token", `The token ${reason}.`);
}

/** Lets the caller pass or throws 403. */
export function authorize(principal: Principal, access: Access): void {
  if (access === "public" || access === "any" || may(principal, access)) return;
  throw new ServiceError("insufficient_scope", `This route needs a token with the scope "${access}".`);
}

/** The caller of a closed route. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error(`route ${request.routeOptions.url} reads the caller but is public`);
  return request.principal;
}

/** Whose policies and jobs the caller sees: the caller's workspace, or those of all for an admin. */
export function readableBy(principal: Principal): Owner {
  return isAdmin(principal) ? null : principal.workspace.id;
}

/** Whether the caller has the scope, or every scope. */
export function may(principal: Principal, scope: Scope): boolean {
  return principal.scopes.has(scope) || isAdmin(principal);
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
    /** The shape of the route's errors, if it is not OpenAI's. */
    errors?: "messages";
  }
  interface FastifyRequest {
    /** Set for every route that is not public. */
    principal: Principal | null;
  }
}

// Ends what is open when its caller's token is revoked or expires, or their session ends. The store is asked once a second
// for each token with something open, so it does not matter on which server that happened.

const CHECK_MS = 1000;

/** `why`: the 401 that the caller would get now. */
export type AccessEnded = (why: ServiceError) => void;

export class AccessWatch {
  readonly #auth: Pick<Authenticator, "authenticate">;
  /** By credentials. */
  readonly #watched = new Map<string, Set<AccessEnded>>();
  #timer: NodeJS.Timeout | null = null;
  #checking = false;

  constructor(auth: Pick<Authenticator, "authenticate">) {
    this.#auth = auth;
  }

  /** Calls `ended` once when the caller may not go on, unless the returned function was called before. */
  watch(request: Pick<FastifyRequest, "headers">, ended: AccessEnded): () => void {
    const credentials = credentialsOf(request) ?? "";
    const watchers = this.#watched.get(credentials) ?? new Set();
    this.#watched.set(credentials, watchers.add(ended));
    this.#timer ??= setInterval(() => void this.#check(), CHECK_MS).unref();
    return () => {
      watchers.delete(ended);
      if (watchers.size === 0 && this.#watched.get(credentials) === watchers) this.#forget(credentials);
    };
  }

  async #check(): Promise<void> {
    if (this.#checking) return; // the database is slow
    this.#checking = true;
    await Promise.all([...this.#watched.keys()].map((credentials) => this.#checkOne(credentials)));
    this.#checking = false;
  }

  async #checkOne(credentials: string): Promise<void> {
    const why = await this.#auth.authenticate(credentials).then(
      () => null,
      (error: unknown) => error,
    );
    // a database that is unreachable says nothing about a token
    if (!(why instanceof ServiceError) || why.status !== 401) return;
    const watchers = [...(this.#watched.get(credentials) ?? [])];
    this.#forget(credentials);
    for (const ended of watchers) ended(why);
  }

  #forget(credentials: string): void {
    this.#watched.delete(credentials);
    if (this.#watched.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
