// OpenAI-style cursor pages: clients send the last item's id as `after` until has_more is false.

import { isJsonObject } from "../../json/json.ts";
import { PageQuery } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

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
