// Sessions of browsers. A one-time code is exchanged for a key that lives for hours and stands for the caller who made
// the code. Codes and keys have 256 random bits and are stored as hashes only. They are rows, so a code made on one
// server works on every other with the same store.

import { randomBytes } from "node:crypto";
import type { Store } from "./store.ts";
import { sha256, type TokenStore } from "./tokens.ts";
import { FIRST_WORKSPACE } from "./workspaces.ts";

/** Who a session stands for: a stored token, an --api-key, or the operator of the server, in a workspace. */
export type SessionHolder =
  | { kind: "token"; tokenId: string }
  | { kind: "key"; keyHash: string }
  | { kind: "operator"; workspace: string };

export interface Session {
  holder: SessionHolder;
  /** Unix seconds. */
  expiresAt: number;
}

export interface SessionCode {
  code: string;
  /** Unix seconds. */
  expiresAt: number;
}

export const CODE_SECONDS = 10 * 60;
export const SESSION_SECONDS = 12 * 3600;

const KEY_PREFIX = "fw_session_";
const KEY_FORM = /^fw_session_[\w-]{43}$/;
const CODE_FORM = /^[\w-]{43}$/;

const HOLDER = `token_id AS "tokenId", key_hash AS "keyHash", workspace`;

interface HolderRow {
  tokenId: string | null;
  keyHash: string | null;
  workspace: string | null;
}

export class SessionStore {
  readonly #store: Store;
  readonly #now: () => number;

  /** `now`: Unix seconds. */
  constructor(store: Store, now: () => number = () => Math.floor(Date.now() / 1000)) {
    this.#store = store;
    this.#now = now;
  }

  /** `until`: when the session ends at the latest, in Unix seconds. */
  async createCode(holder: SessionHolder, until: number = Number.POSITIVE_INFINITY): Promise<SessionCode> {
    const now = this.#now();
    const code = randomBytes(32).toString("base64url");
    const [expiresAt, latest] = [now + CODE_SECONDS, Math.min(until, now + CODE_SECONDS + SESSION_SECONDS)];
    await this.#store.run("DELETE FROM session_codes WHERE expires_at <= ?1", now);
    await this.#store.run(
      "INSERT INTO session_codes (hash, token_id, key_hash, workspace, expires_at, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      ...[hashOf(code), ...columnsOf(holder), expiresAt, latest],
    );
    return { code, expiresAt };
  }

  /** Exchanges a code for a key. null = the code is unknown, used or expired. */
  redeem(code: string): Promise<(Session & { key: string }) | null> {
    if (!CODE_FORM.test(code)) return Promise.resolve(null);
    const now = this.#now();
    const key = `${KEY_PREFIX}${randomBytes(32).toString("base64url")}`;
    return this.#store.transaction(async (tx) => {
      const [row] = await tx.all<HolderRow & { until: number; expiresAt: number }>(
        `DELETE FROM session_codes WHERE hash = ?1 RETURNING ${HOLDER}, until, expires_at AS "expiresAt"`,
        hashOf(code),
      );
      if (row === undefined || row.expiresAt <= now) return null;
      const expiresAt = Math.min(row.until, now + SESSION_SECONDS);
      await tx.run("DELETE FROM sessions WHERE expires_at <= ?1", now);
      await tx.run(
        "INSERT INTO sessions (hash, token_id, key_hash, workspace, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        ...[hashOf(key), row.tokenId, row.keyHash, row.workspace, expiresAt],
      );
      return { key, holder: holderOf(row), expiresAt };
    });
  }

  /** The session of a key; null = there is none, or it is over. */
  async check(key: string): Promise<Session | null> {
    const sql = `SELECT ${HOLDER}, expires_at AS "expiresAt" FROM sessions WHERE hash = ?1 AND expires_at > ?2`;
    const row = await this.#store.get<HolderRow & { expiresAt: number }>(sql, hashOf(key), this.#now());
    return row ? { holder: holderOf(row), expiresAt: row.expiresAt } : null;
  }

  async end(key: string): Promise<void> {
    await this.#store.run("DELETE FROM sessions WHERE hash = ?1", hashOf(key));
  }
}

/** Who has the data of a server: its oldest admin token, or the operator in the first workspace. */
export async function operatorOf(tokens: TokenStore): Promise<SessionHolder> {
  const admin = await tokens.firstAdmin();
  if (admin) return { kind: "token", tokenId: admin.id };
  return { kind: "operator", workspace: (await tokens.openWorkspace(FIRST_WORKSPACE)).id };
}

/** Whether a bearer token has the form of a session's key. */
export function isSessionKey(secret: string): boolean {
  return KEY_FORM.test(secret);
}

/** Token id, hash of the key, workspace. */
function columnsOf(holder: SessionHolder): [string | null, string | null, string | null] {
  if (holder.kind === "token") return [holder.tokenId, null, null];
  return holder.kind === "key" ? [null, holder.keyHash, null] : [null, null, holder.workspace];
}

function holderOf({ tokenId, keyHash, workspace }: HolderRow): SessionHolder {
  if (tokenId !== null) return { kind: "token", tokenId };
  return keyHash !== null ? { kind: "key", keyHash } : { kind: "operator", workspace: workspace! };
}

function hashOf(secret: string): string {
  return sha256(secret).toString("hex");
}
