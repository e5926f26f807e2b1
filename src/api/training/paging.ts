// Cursor pages as clients of OpenAI-style lists follow them: the last item's id, exclusive, until has_more is false.

import type { JsonObject } from "../../json/json-object.ts";
import { Fields } from "./fields.ts";
import { Issues, invalid } from "./issues.ts";

export interface PageQuery {
  after: string | null;
  /** 1..100 */
  limit: number;
  order: "asc" | "desc" | null;
}

const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;

export function pageQuery(query: unknown): PageQuery {
  const raw = (query ?? {}) as JsonObject;
  const issues = new Issues();
  const fields = new Fields(raw, ["query"], issues);
  const order = fields.oneOf("order", ["asc", "desc"]);
  const after = fields.text("after");
  issues.throwIfAny();
  return { after: after === "" ? null : after, limit: limitOf(raw.limit), order };
}

function limitOf(text: unknown): number {
  if (text === undefined || text === "") return DEFAULT_LIMIT;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw invalid(["query", "limit"], "int_parsing", `Input should be an integer from 1 to ${MAX_LIMIT}`, text);
  }
  return limit;
}

/** `found`: up to one more item than the limit, which only says that there are more. */
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
