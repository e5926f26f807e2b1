// Items that a request refers to: those of the responses that it continues, and those it names by id. Ids of items contain the
// key of their response.
import { ServiceError } from "../../errors/service-error.ts";
import type { ResponseTable, StoredResponse } from "../../store/response-table.ts";
import type { Item } from "./items.ts";

const ITEM_ID = /^[a-z]+_([0-9a-f]{32})_(?:in)?\d+$/;
/** References to more responses than these are refused. */
const MOST_REFERENCES = 100;

/** What a workspace has stored. */
export type StoredResponses = Pick<ResponseTable, "conversation" | "get" | "keeps">;

export function responseId(key: string): string {
  return `resp_${key}`;
}

/** The input as items with ids. */
export function inputItems(input: string | readonly Item[], key: string): Item[] {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  return items.map((item, index) => {
    const id = typeof item.id === "string" && item.id !== "" ? item.id : `msg_${key}_in${index}`;
    return { ...item, type: item.type ?? "message", id };
  });
}

export function itemsOf({ input, response }: StoredResponse): Item[] {
  const { output } = JSON.parse(response) as { output: Item[] };
  return [...(JSON.parse(input) as Item[]), ...output];
}

/** All items before the request, oldest first. */
export async function earlierItems(stored: StoredResponses, owner: string, id: string): Promise<Item[]> {
  const param = "previous_response_id";
  if (!stored.keeps) {
    const message = "This server keeps no responses (--keep-responses): send the conversation as input.";
    throw new ServiceError("invalid_value", message, { param });
  }
  const responses = await stored.conversation(owner, id);
  const first = responses[0];
  if (first === undefined) {
    throw new ServiceError("unknown_response", `Previous response with id '${id}' not found.`, { param });
  }
  if (first.previousId !== null) {
    const message = `The response ${id} cannot be continued: ${first.previousId}, which its conversation contains, is gone.`;
    throw new ServiceError("unknown_response", message, { param });
  }
  return responses.flatMap(itemsOf);
}

/** Replaces references by the items they name. */
export async function resolvedItems(stored: StoredResponses, owner: string, items: readonly Item[]): Promise<Item[]> {
  const references = items.filter(({ type }) => type === "item_reference");
  if (references.length === 0) return [...items];
  const keys = new Set(references.map(({ id }) => ITEM_ID.exec(String(id))?.[1]).filter((key) => key !== undefined));
  if (keys.size > MOST_REFERENCES) {
    const message = `input refers to items of ${keys.size} responses; at most ${MOST_REFERENCES} are looked up.`;
    throw new ServiceError("invalid_value", message, { param: "input" });
  }
  const known = new Map<unknown, Item>();
  for (const key of keys) {
    const response = await stored.get(owner, responseId(key));
    for (const item of response === null ? [] : itemsOf(response)) known.set(item.id, item);
  }
  return items.map((item, index) => {
    if (item.type !== "item_reference") return item;
    const found = known.get(item.id);
    if (found !== undefined) return found;
    const message = `Item with id '${String(item.id).slice(0, 100)}' not found: its response is not stored here.`;
    throw new ServiceError("unknown_response", message, { param: `input.${index}` });
  });
}
