// Parameters that several routes share: pages, steps, a model of the caller's.

import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, readableBy } from "../http/auth.ts";
import { PageQuery } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

// OpenAI-style cursor pages: clients send the last item's id as `after` until has_more is false.

const DEFAULT_LIMIT = 20;

/** An empty string counts as absent. */
export function pageQuery(query: unknown): { after: string | null; limit: number } {
  const given = isJsonObject(query) ? query : {};
  const { after, limit } = readQuery(PageQuery, { after: given.after || null, limit: given.limit || null });
  return { after: after ?? null, limit: limit ?? DEFAULT_LIMIT };
}

/** `found` may have one item beyond the limit, which only shows that there are more. */
export function page<Item, Wire extends { id: string }>(
  found: readonly Item[],
  limit: number,
  present: (item: Item) => Wire,
) {
  const data = found.slice(0, limit).map(present);
  return {
    object: "list" as const,
    data,
    first_id: data[0]?.id ?? "",
    last_id: data.at(-1)?.id ?? "",
    has_more: found.length > limit,
  };
}

// Reads a step from a path: a number or "latest".
export function stepFrom(text: string): number | "latest" {
  if (text === "latest") return text;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new ServiceError("unknown_checkpoint", `${text} is not a step; use a number or "latest".`);
}

// Only a workspace itself trains its models. An admin sees those of all workspaces, and may cancel and delete.

/** A model of the caller's workspace; 404 if the caller cannot see it, 403 for an admin of another workspace. */
export async function ownModel(training: TrainingService, id: string, principal: Principal): Promise<ModelRecord> {
  const model = await training.models.owned(id, readableBy(principal));
  if (model.owner === principal.workspace.id) return model;
  const message = "The model belongs to another workspace, and only tokens of that workspace can train it.";
  throw new ServiceError("other_workspace", message);
}
