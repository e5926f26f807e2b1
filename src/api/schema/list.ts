// Lists, as OpenAI's API has them. They come in pages: a client sends the last item's id as `after` until has_more is false.
import { type TSchema, Type } from "typebox";
import { orNull } from "./body.ts";

/** A page of a list. */
export function listOf<S extends TSchema>(item: S, title: string) {
  const page = { first_id: Type.String(), last_id: Type.String(), has_more: Type.Boolean() };
  return Type.Object({ ...wholeListOf(item, title).properties, ...page }, { title });
}

/** A list that is never long. */
export function wholeListOf<S extends TSchema>(item: S, title: string) {
  return Type.Object({ object: Type.Literal("list"), data: Type.Array(item) }, { title });
}

/** What a client asks for. `usual`: the limit of one who names none. */
export function pageOf(most: number, usual: number = most) {
  return Type.Object({
    after: orNull(Type.String(), { description: "The id of the last item seen." }),
    limit: orNull(Type.Integer({ minimum: 1, maximum: most }), { default: usual }),
  });
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

/** The items after the one with this id; none if that one is gone. */
export function afterId<Item extends { id: string }>(items: readonly Item[], after: string | null): readonly Item[] {
  if (after === null) return items;
  const at = items.findIndex(({ id }) => id === after);
  return at < 0 ? [] : items.slice(at + 1);
}
