// Workspaces own policies and jobs. Every token belongs to one, and tokens of one workspace see and may change the same.
// A workspace outlives its tokens: a new token of the same workspace finds everything again.

import { randomBytes } from "node:crypto";
import { OperatorError } from "../errors/faults.ts";
import type { Statements } from "./store.ts";

export interface Workspace {
  /** Column `owner` of models, jobs and runs. */
  id: string;
  /** Unique. */
  name: string;
  /** The entity of models that are registered without one. */
  entity: string;
}

/** That of the first token. */
export const FIRST_WORKSPACE = "default";

/** What people may call one. The database cannot hold half a surrogate pair, and PostgreSQL no U+0000. */
export const WORKSPACE_NAME = /^(?! )[^\p{Cc}\p{Cs}]{1,128}(?<! )$/u;

/** Names of the workspaces of --api-key, which have no row until a token joins one. */
const KEY_WORKSPACE = /^api-key-([1-9]\d{0,5})$/;

/** Each --api-key has a workspace of its own, by its position from 0. */
export function keyWorkspace(position: number): Workspace {
  const name = `api-key-${position + 1}`;
  return { id: `key-${position}`, name, entity: name };
}

/** What to call a workspace without a row. */
export function nameOfWorkspace(id: string): string {
  const position = /^key-(\d+)$/.exec(id)?.[1];
  return position === undefined ? id : keyWorkspace(Number(position)).name;
}

/** The workspace with this name, which is made if there is none. `now`: Unix seconds. */
export async function openWorkspace(tx: Statements, name: string, now: number): Promise<Workspace> {
  const known = await workspaceNamed(tx, name);
  if (known) return known;
  const position = KEY_WORKSPACE.exec(name)?.[1];
  const id = randomBytes(8).toString("hex");
  return insert(tx, position === undefined ? { id, name, entity: name } : keyWorkspace(Number(position) - 1), now);
}

/** A new workspace for one token, under its name. A name that is taken gets the token's id as well. */
export async function ownWorkspace(
  tx: Statements,
  token: { id: string; name: string },
  now: number,
): Promise<Workspace> {
  const name = token.name || token.id;
  const isTaken = KEY_WORKSPACE.test(name) || (await workspaceNamed(tx, name)) !== null;
  return insert(tx, { id: token.id, name: isTaken ? `${name}-${token.id}` : name, entity: name }, now);
}

async function workspaceNamed(sql: Statements, name: string): Promise<Workspace | null> {
  return (await sql.get<Workspace>("SELECT id, name, entity FROM workspaces WHERE name = ?1", name)) ?? null;
}

export async function workspaceOf(sql: Statements, id: string): Promise<Workspace | null> {
  return (await sql.get<Workspace>("SELECT id, name, entity FROM workspaces WHERE id = ?1", id)) ?? null;
}

async function insert(tx: Statements, workspace: Workspace, now: number): Promise<Workspace> {
  const { id, name, entity } = workspace;
  await tx.run("INSERT INTO workspaces (id, name, entity, created_at) VALUES (?1, ?2, ?3, ?4)", id, name, entity, now);
  return workspace;
}

/** The tables whose rows a workspace owns, in their column `owner`. */
export const OWNED_TABLES = ["models", "jobs", "runs", "notes", "stored_responses", "removed_steps", "reservations"];

/** Gives everything of one workspace to another. Throws if both have a policy or a run of the same name. */
export async function moveContents(tx: Statements, from: Workspace, to: Workspace): Promise<void> {
  const policy = await tx.get<{ entity: string; project: string; name: string }>(
    `SELECT entity, project, name FROM models AS ours WHERE owner = ?1 AND EXISTS (SELECT 1 FROM models AS theirs
       WHERE theirs.owner = ?2 AND theirs.entity = ours.entity AND theirs.project = ours.project AND theirs.name = ours.name)
     ORDER BY seq LIMIT 1`,
    ...[from.id, to.id],
  );
  if (policy) throw conflict(`policy ${policy.entity}/${policy.project}/${policy.name}`, from, to);
  const run = await tx.get<{ name: string | null }>(
    `SELECT name FROM runs AS ours WHERE owner = ?1 AND EXISTS (SELECT 1 FROM runs AS theirs
       WHERE theirs.owner = ?2 AND (theirs.name = ours.name OR theirs.request_id = ours.request_id))`,
    ...[from.id, to.id],
  );
  if (run) throw conflict(`training run ${run.name ?? ""}`, from, to);
  // a key is for repeating a request that was just sent
  await tx.run(
    `UPDATE jobs SET idempotency_key = NULL WHERE owner = ?1 AND idempotency_key IN
       (SELECT idempotency_key FROM jobs WHERE owner = ?2 AND idempotency_key IS NOT NULL)`,
    ...[from.id, to.id],
  );
  await tx.run(
    `INSERT INTO stored_bytes (owner, bytes) SELECT ?2, bytes FROM stored_bytes WHERE owner = ?1
     ON CONFLICT (owner) DO UPDATE SET bytes = stored_bytes.bytes + excluded.bytes`,
    ...[from.id, to.id],
  );
  await tx.run("DELETE FROM stored_bytes WHERE owner = ?1", from.id);
  for (const table of OWNED_TABLES) await tx.run(`UPDATE ${table} SET owner = ?2 WHERE owner = ?1`, from.id, to.id);
}

function conflict(what: string, from: Workspace, to: Workspace): OperatorError {
  return new OperatorError(
    `the workspaces ${from.name} and ${to.name} both have a ${what}: delete one of the two, or keep them apart`,
  );
}

/** Forgets a workspace that no token belongs to and that owns nothing. */
export async function removeEmpty(tx: Statements, { id }: Workspace): Promise<void> {
  await tx.run(
    `DELETE FROM workspaces WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM tokens WHERE workspace = ?1)
       AND NOT EXISTS (SELECT 1 FROM models WHERE owner = ?1)`,
    id,
  );
}
