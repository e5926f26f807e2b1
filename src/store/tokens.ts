// Access tokens. A token is shown once and stored as a hash. It has 32 random bytes, so a fast hash is enough. Tokens
// are looked up by id, which is part of the token, and hashes are compared in constant time.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Sql, Store } from "./store.ts";

export const SCOPES = ["inference", "training", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export interface TokenRecord {
  id: string;
  name: string;
  scopes: readonly Scope[];
  /** Unix time in seconds, like the other two. */
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
}

export interface NewToken {
  name: string;
  scopes: readonly Scope[];
  /** Seconds; null = forever. */
  lifetime: number | null;
}

export interface CreatedToken {
  secret: string;
  record: TokenRecord;
}

export type TokenCheck = { ok: true; token: TokenRecord } | { ok: false; why: "unknown" | "expired" | "revoked" };

/** `fw_` + 8 hex characters (the id) + `_` + 43 base64url characters (256 random bits). */
const TOKEN_FORM = /^fw_([0-9a-f]{8})_[A-Za-z0-9_-]{43}$/;

const SELECT = `SELECT id, name, hash, scopes, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"
  FROM tokens`;

export class TokenStore {
  readonly #store: Store;
  readonly #now: () => number;

  /** `now`: Unix seconds. */
  constructor(store: Store, now: () => number = () => Math.floor(Date.now() / 1000)) {
    this.#store = store;
    this.#now = now;
  }

  /** Returns the secret, which is not stored and cannot be shown again. */
  async create(token: NewToken): Promise<CreatedToken> {
    return (await this.#create(token, async () => true))!;
  }

  /** Creates the first token. Returns null if there is any token already, even an expired one. */
  createFirst(token: NewToken): Promise<CreatedToken | null> {
    return this.#create(token, async (tx) => (await listOn(tx)).length === 0);
  }

  #create(token: NewToken, isWanted: (tx: Sql) => Promise<boolean>): Promise<CreatedToken | null> {
    const made = draw(token, this.#now());
    const { id } = made.record;
    return this.#store.transaction<CreatedToken | null>(
      async (tx) => {
        if (!(await isWanted(tx))) return null;
        await insert(tx, made);
        return made;
      },
      { committed: async (sql) => ((await sql.get(`${SELECT} WHERE id = ?1`, id)) ? made : undefined) },
    );
  }

  list(): Promise<TokenRecord[]> {
    return listOn(this.#store);
  }

  /** Whether any token is valid now. */
  async hasUsable(): Promise<boolean> {
    return (await this.list()).some((token) => stateOf(token, this.#now()) === null);
  }

  /** Revokes by id or exact name, and returns the revoked tokens. Several tokens may have the same name. */
  revoke(idOrName: string): Promise<TokenRecord[]> {
    const now = this.#now();
    const named = async (sql: Sql, revokedAt: number | null) =>
      (await listOn(sql)).filter((t) => (t.id === idOrName || t.name === idOrName) && t.revokedAt === revokedAt);
    return this.#store.transaction(
      async (tx) => {
        const affected = await named(tx, null);
        for (const token of affected) await tx.run("UPDATE tokens SET revoked_at = ?1 WHERE id = ?2", now, token.id);
        return affected.map((token) => ({ ...token, revokedAt: now }));
      },
      {
        committed: async (sql) => {
          const revoked = await named(sql, now);
          return revoked.length > 0 ? revoked : undefined;
        },
      },
    );
  }

  async check(secret: string): Promise<TokenCheck> {
    const id = TOKEN_FORM.exec(secret)?.[1];
    // what is no token, such as a key of --api-key, needs no database
    if (id === undefined) return { ok: false, why: "unknown" };
    const row = await this.#store.get<TokenRow>(`${SELECT} WHERE id = ?1`, id);
    // hashes and compares even without a row, so that timing does not reveal known ids
    const stored = Buffer.from(row?.hash ?? "0".repeat(64), "hex");
    if (!timingSafeEqual(stored, sha256(secret)) || row === undefined) return { ok: false, why: "unknown" };
    const token = toRecord(row);
    const why = stateOf(token, this.#now());
    return why === null ? { ok: true, token } : { ok: false, why };
  }
}

interface TokenRow extends Omit<TokenRecord, "scopes"> {
  scopes: string;
  hash: string;
}

function draw({ name, scopes, lifetime }: NewToken, createdAt: number): CreatedToken {
  const id = randomBytes(4).toString("hex");
  const secret = `fw_${id}_${randomBytes(32).toString("base64url")}`;
  const expiresAt = lifetime === null ? null : createdAt + lifetime;
  return { secret, record: { id, name, scopes, createdAt, expiresAt, revokedAt: null } };
}

async function insert(sql: Sql, { secret, record }: CreatedToken): Promise<void> {
  const { id, name, scopes, createdAt, expiresAt } = record;
  await sql.run(
    "INSERT INTO tokens (id, name, hash, scopes, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    ...[id, name, sha256(secret).toString("hex"), scopes.join(" "), createdAt, expiresAt],
  );
}

async function listOn(sql: Sql): Promise<TokenRecord[]> {
  return (await sql.all<TokenRow>(`${SELECT} ORDER BY created_at, id`)).map(toRecord);
}

function toRecord({ hash: _, scopes, ...row }: TokenRow): TokenRecord {
  const known: readonly string[] = SCOPES;
  return { ...row, scopes: scopes.split(" ").filter((scope): scope is Scope => known.includes(scope)) };
}

/** Why the token is not valid; null = it is. */
function stateOf(token: TokenRecord, now: number): "expired" | "revoked" | null {
  if (token.revokedAt !== null) return "revoked";
  return token.expiresAt !== null && token.expiresAt <= now ? "expired" : null;
}

export function sha256(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
