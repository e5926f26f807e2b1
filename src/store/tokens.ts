// Access tokens. A token is shown once and stored as a hash. It has 32 random bytes, so a fast hash is enough. Tokens
// are looked up by id, which is part of the token, and hashes are compared in constant time.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Statements, Store } from "./store.ts";
import { moveContents, openWorkspace, ownWorkspace, removeEmpty, type Workspace, workspaceOf } from "./workspaces.ts";

export const SCOPES = ["inference", "training", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export interface TokenRecord {
  id: string;
  name: string;
  scopes: readonly Scope[];
  /** Owns what the token makes. */
  workspace: Workspace;
  /** Unix time in seconds, like the others. */
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** Within a minute. */
  lastUsedAt: number | null;
  /** Made by a server for programs on its own machine (local-key.ts). */
  isLocal: boolean;
}

export interface NewToken {
  name: string;
  scopes: readonly Scope[];
  /** Seconds; null = forever. */
  lifetime: number | null;
  /** Name of its workspace, which is made if there is none. Default: one of its own. */
  workspace?: string;
}

export interface CreatedToken {
  secret: string;
  record: TokenRecord;
}

export type TokenCheck = { ok: true; token: TokenRecord } | { ok: false; why: "unknown" | "expired" | "revoked" };

/** `fw_` + 8 hex characters (the id) + `_` + 43 base64url characters (256 random bits). */
const TOKEN_FORM = /^fw_([0-9a-f]{8})_[A-Za-z0-9_-]{43}$/;

/** In the column of the scopes: marks a local key. Older versions skip a scope that they do not know. */
const LOCAL_MARK = "local";

/** How exactly the last use is known. */
const USE_SECONDS = 60;

const SELECT = `SELECT tokens.id, tokens.name, hash, scopes, tokens.created_at AS "createdAt", expires_at AS "expiresAt",
    revoked_at AS "revokedAt", last_used_at AS "lastUsedAt", COALESCE(workspace, tokens.id) AS "workspaceId",
    COALESCE(workspaces.name, tokens.name) AS "workspaceName", COALESCE(entity, tokens.name) AS entity
  FROM tokens LEFT JOIN workspaces ON workspaces.id = workspace`;

export class TokenStore {
  readonly #store: Store;
  readonly #now: () => number;
  /** When the use of each token was last recorded, by id. */
  readonly #recorded = new Map<string, number>();

  /** `now`: Unix seconds. */
  constructor(store: Store, now: () => number = () => Math.floor(Date.now() / 1000)) {
    this.#store = store;
    this.#now = now;
  }

  /** Returns the secret, which is not stored and cannot be shown again. */
  async create(token: NewToken): Promise<CreatedToken> {
    return (await this.#create(token, async () => true))!;
  }

  /** Creates the first token. Returns null if there is any token already, even an expired one. Local keys do not count. */
  createFirst(token: NewToken): Promise<CreatedToken | null> {
    return this.#create(token, async (tx) => (await listOn(tx)).every(({ isLocal }) => isLocal));
  }

  /** Creates a local key, and deletes those that have expired. */
  async createLocal(token: NewToken): Promise<CreatedToken> {
    const isOver = (record: TokenRecord) => record.isLocal && stateOf(record, this.#now()) === "expired";
    const sweep = async (tx: Statements) => {
      for (const { id } of (await listOn(tx)).filter(isOver)) await tx.run("DELETE FROM tokens WHERE id = ?1", id);
      return true;
    };
    return (await this.#create(token, sweep, true))!;
  }

  /** Deletes a local key, given as its text. Another token stays. */
  async removeLocal(secret: string): Promise<void> {
    const check = await this.check(secret);
    const id = TOKEN_FORM.exec(secret)?.[1];
    if (id === undefined || (!check.ok && check.why === "unknown")) return;
    if ((await this.list()).some((token) => token.id === id && token.isLocal)) {
      await this.#store.run("DELETE FROM tokens WHERE id = ?1", id);
    }
  }

  #create(
    token: NewToken,
    isWanted: (tx: Statements) => Promise<boolean>,
    isLocal = false,
  ): Promise<CreatedToken | null> {
    const now = this.#now();
    const made = draw(token, now, isLocal);
    return this.#store.transaction(async (tx) => {
      if (!(await isWanted(tx))) return null;
      const { workspace: name } = token;
      const workspace = await (name === undefined ? ownWorkspace(tx, made.record, now) : openWorkspace(tx, name, now));
      const created = { ...made, record: { ...made.record, workspace } };
      await insert(tx, created);
      return created;
    });
  }

  list(): Promise<TokenRecord[]> {
    return listOn(this.#store);
  }

  /** Whether any token is valid now. Local keys do not count: they go with their server. */
  async hasUsable(): Promise<boolean> {
    return (await this.list()).some((token) => !token.isLocal && stateOf(token, this.#now()) === null);
  }

  /** Revokes by id or exact name, and returns the revoked tokens. Several tokens may have the same name. */
  revoke(idOrName: string): Promise<TokenRecord[]> {
    const now = this.#now();
    return this.#store.transaction(async (tx) => {
      const named = (await listOn(tx)).filter(({ id, name }) => id === idOrName || name === idOrName);
      const affected = named.filter(({ revokedAt }) => revokedAt === null);
      for (const token of affected) await tx.run("UPDATE tokens SET revoked_at = ?1 WHERE id = ?2", now, token.id);
      return affected.map((token) => ({ ...token, revokedAt: now }));
    });
  }

  /** Whether there is such a token. One that was revoked before stays as it was. */
  async revokeById(id: string): Promise<boolean> {
    const sql = "UPDATE tokens SET revoked_at = COALESCE(revoked_at, ?1) WHERE id = ?2";
    return (await this.#store.run(sql, this.#now(), id)) > 0;
  }

  /**
   * Moves tokens, by id or exact name, to a workspace, which is made if there is none. If no valid token stays behind,
   * what their old workspace owns moves along, and so does a local key: it never keeps anything back, and shows its user
   * the same as before. Returns the tokens.
   */
  join(idOrName: string, workspace: string): Promise<TokenRecord[]> {
    const now = this.#now();
    const isNamed = (token: TokenRecord) => token.id === idOrName || token.name === idOrName;
    return this.#store.transaction(async (tx) => {
      const all = await listOn(tx);
      const moving = all.filter(isNamed);
      if (moving.length === 0) return [];
      const to = await openWorkspace(tx, workspace, now);
      const left = new Map(moving.map((token) => [token.workspace.id, token.workspace]));
      left.delete(to.id);
      for (const { id } of moving) await moveToken(tx, id, to);
      for (const from of left.values()) {
        const staying = all.filter((token) => token.workspace.id === from.id && !isNamed(token));
        if (staying.some((token) => !token.isLocal && stateOf(token, now) === null)) continue;
        for (const { id } of staying.filter(({ isLocal }) => isLocal)) await moveToken(tx, id, to);
        await moveContents(tx, from, to);
        await removeEmpty(tx, from);
      }
      return moving.map((token) => ({ ...token, workspace: to }));
    });
  }

  /** The oldest valid token with the scope admin that is not a local key. */
  async firstAdmin(): Promise<TokenRecord | null> {
    const now = this.#now();
    const isAdmin = ({ scopes, isLocal }: TokenRecord) => scopes.includes("admin") && !isLocal;
    return (await this.list()).find((token) => isAdmin(token) && stateOf(token, now) === null) ?? null;
  }

  /** The workspace with this id. One without a row, such as that of an --api-key, is named after its id. */
  async workspace(id: string): Promise<Workspace> {
    return (await workspaceOf(this.#store, id)) ?? { id, name: id, entity: id };
  }

  /** Makes the workspace if there is none with this name. */
  openWorkspace(name: string): Promise<Workspace> {
    const now = this.#now();
    return this.#store.transaction((tx) => openWorkspace(tx, name, now));
  }

  /** A token whose holder was authenticated by other means. */
  async checkId(id: string): Promise<TokenCheck> {
    const row = await this.#store.get<TokenRow>(`${SELECT} WHERE tokens.id = ?1`, id);
    if (row === undefined) return { ok: false, why: "unknown" };
    return this.#judge(toRecord(row));
  }

  async check(secret: string): Promise<TokenCheck> {
    const id = TOKEN_FORM.exec(secret)?.[1];
    // what is no token, such as a key of --api-key, needs no database
    if (id === undefined) return { ok: false, why: "unknown" };
    const row = await this.#store.get<TokenRow>(`${SELECT} WHERE tokens.id = ?1`, id);
    // hashes and compares even without a row, so that timing does not reveal known ids
    const stored = Buffer.from(row?.hash ?? "0".repeat(64), "hex");
    if (!timingSafeEqual(stored, sha256(secret)) || row === undefined) return { ok: false, why: "unknown" };
    return this.#judge(toRecord(row));
  }

  #judge(token: TokenRecord): TokenCheck {
    const now = this.#now();
    const why = stateOf(token, now);
    if (why !== null) return { ok: false, why };
    this.#recordUse(token.id, now);
    return { ok: true, token };
  }

  /** Once a minute. Nobody waits for it, and if it fails, the next use is recorded instead. */
  #recordUse(id: string, now: number): void {
    if (now - (this.#recorded.get(id) ?? 0) < USE_SECONDS) return;
    this.#recorded.set(id, now);
    const sql = "UPDATE tokens SET last_used_at = ?1 WHERE id = ?2 AND COALESCE(last_used_at, 0) < ?1";
    this.#store.run(sql, now, id).catch(() => this.#recorded.delete(id));
  }
}

interface TokenRow extends Omit<TokenRecord, "scopes" | "workspace" | "isLocal"> {
  scopes: string;
  hash: string;
  workspaceId: string;
  workspaceName: string;
  entity: string;
}

/** A token without its workspace. */
function draw({ name, scopes, lifetime }: NewToken, createdAt: number, isLocal: boolean) {
  const id = randomBytes(4).toString("hex");
  const secret = `fw_${id}_${randomBytes(32).toString("base64url")}`;
  const expiresAt = lifetime === null ? null : createdAt + lifetime;
  return { secret, record: { id, name, scopes, createdAt, expiresAt, revokedAt: null, lastUsedAt: null, isLocal } };
}

async function insert(sql: Statements, { secret, record }: CreatedToken): Promise<void> {
  const { id, name, workspace, createdAt, expiresAt } = record;
  const scopes = [...record.scopes, ...(record.isLocal ? [LOCAL_MARK] : [])];
  await sql.run(
    "INSERT INTO tokens (id, name, hash, scopes, workspace, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    ...[id, name, sha256(secret).toString("hex"), scopes.join(" "), workspace.id, createdAt, expiresAt],
  );
}

async function moveToken(tx: Statements, id: string, to: Workspace): Promise<void> {
  await tx.run("UPDATE tokens SET workspace = ?1 WHERE id = ?2", to.id, id);
}

async function listOn(sql: Statements): Promise<TokenRecord[]> {
  return (await sql.all<TokenRow>(`${SELECT} ORDER BY tokens.created_at, tokens.id`)).map(toRecord);
}

function toRecord({ hash: _, scopes, workspaceId, workspaceName, entity, ...row }: TokenRow): TokenRecord {
  const known: readonly string[] = SCOPES;
  const words = scopes.split(" ");
  return {
    ...row,
    scopes: words.filter((scope): scope is Scope => known.includes(scope)),
    isLocal: words.includes(LOCAL_MARK),
    workspace: { id: workspaceId, name: workspaceName, entity },
  };
}

/** Why the token is not valid; null = it is. */
function stateOf(token: TokenRecord, now: number): "expired" | "revoked" | null {
  if (token.revokedAt !== null) return "revoked";
  return token.expiresAt !== null && token.expiresAt <= now ? "expired" : null;
}

export function sha256(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
