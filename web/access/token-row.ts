// Tokens as the server lists them, and what to say about each.
import { ago, duration, moment } from "../format.ts";

const DAY_MS = 86_400_000;

export const SCOPES = ["inference", "training", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export const SCOPE_NOTES: Readonly<Record<Scope, string>> = {
  inference: "may ask the models",
  training: "may train, keep and delete policies",
  admin: "may create and revoke tokens, see everybody's requests, and read the log",
};

export interface TokenRow {
  id: string;
  name: string;
  scopes: Scope[];
  workspace: string;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** Days to live; null: for ever. */
export const LIFETIMES: readonly { label: string; days: number | null }[] = [
  { label: "1 day", days: 1 },
  { label: "30 days", days: 30 },
  { label: "1 year", days: 365 },
  { label: "for ever", days: null },
];

export function stateOf({ expires_at, revoked_at }: TokenRow, now: number): { text: string; isUsable: boolean } {
  if (revoked_at !== null) return { text: `revoked ${ago(revoked_at, now)}`, isUsable: false };
  if (expires_at === null) return { text: "valid", isUsable: true };
  if (Date.parse(expires_at) <= now) return { text: `expired ${ago(expires_at, now)}`, isUsable: false };
  const left = Date.parse(expires_at) - now;
  const leftOver = left < DAY_MS ? ` (${duration(left)})` : "";
  return { text: `valid until ${moment(expires_at)}${leftOver}`, isUsable: true };
}
