// Conversations that are partly stored: the items of the responses that a request continues, and those that it names by id. Ids
// of items contain the key of their response. A reference is kept as a reference, however often it is repeated.
import { invalidValue, ServiceError } from "../../../errors/service-error.ts";
import { givingWay } from "../../../pacing/turns.ts";
import type { ConversationTable, ItemPlace } from "../../../store/tables/conversations.ts";
import type { ResponseTable, StoredItem } from "../../../store/tables/responses.ts";
import type { ConversationRoom } from "./conversation-room.ts";
import { type Conversation, type Item, knownFields, LONGEST_ID } from "./items.ts";
import type { OutputItem } from "./output-items.ts";

const ITEM_ID = /^[a-z]+_([0-9a-f]{32})_(?:in)?\d+$/;

/** What a workspace has stored. */
export interface StoredResponses {
  responses: Pick<ResponseTable, "keeps">;
  conversations: Pick<ConversationTable, "chain" | "items" | "referenced">;
}

export function responseId(key: string): string {
  return `resp_${key}`;
}

/** The response that an item of ours belongs to; null for other ids. */
export function responseOf(itemId: string): string | null {
  const key = ITEM_ID.exec(itemId)?.[1];
  return key === undefined ? null : responseId(key);
}

/** The input as items with ids. */
export function inputItems(input: string | readonly Item[], key: string): Item[] {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  return items.map((item, index) => {
    const own = typeof item.id === "string" && item.id !== "" && item.id.length <= LONGEST_ID;
    return { ...item, type: item.type ?? "message", id: own ? item.id : `msg_${key}_in${index}` };
  });
}

/** The output as it is kept: without what only the reply needs. */
export function outputItems(output: readonly OutputItem[]): StoredItem[] {
  return output.map((item) => ({ id: item.id, item: JSON.stringify(knownFields({ ...item })) }));
}

/**
 * Adds all items to the conversation: those before the request, then its own. They are counted before they are loaded. Returns
 * its own as they are kept.
 */
export async function readConversation(
  stored: StoredResponses,
  owner: string,
  { previous, own }: { previous: string | null; own: readonly Item[] },
  { room, conversation }: { room: ConversationRoom; conversation: Conversation },
): Promise<StoredItem[]> {
  room.count({ items: own.length });
  const earlier = previous === null ? [] : await earlierItems(stored, owner, previous, room);
  const references = [
    ...earlier.flatMap(({ id, item }) => (item === null ? [id] : [])),
    ...own.flatMap((item) => (item.type === "item_reference" ? [String(item.id)] : [])),
  ];
  const known = await referencedItems(stored, owner, references, room);
  const giveWay = givingWay();
  for (const { id, item } of earlier) {
    const found = item === null ? known.get(id) : (JSON.parse(item) as Item);
    if (found === undefined) throw gone(id, "previous_response_id");
    conversation.add(found, "previous_response_id");
    await giveWay();
  }
  const input: StoredItem[] = [];
  for (const [index, item] of own.entries()) {
    const path = `input.${index}`;
    const id = String(item.id);
    const isReference = item.type === "item_reference";
    const found = isReference ? known.get(id) : item;
    if (found === undefined) throw gone(id, path);
    conversation.add(found, path);
    const text = isReference ? null : JSON.stringify(knownFields(item));
    room.count({ bytes: text === null ? 0 : Buffer.byteLength(text) });
    input.push({ id, item: text });
    await giveWay();
  }
  return input;
}

/** The items of what a request continues, oldest first. */
async function earlierItems(
  { responses, conversations }: StoredResponses,
  owner: string,
  id: string,
  room: ConversationRoom,
): Promise<StoredItem[]> {
  const param = "previous_response_id";
  if (!responses.keeps) {
    throw invalidValue("This server keeps no responses (--keep-responses): send the conversation as input.", param);
  }
  const chain = await conversations.chain(owner, id, room);
  const first = chain[0];
  if (first === undefined) {
    throw new ServiceError("unknown_response", `Previous response with id '${id.slice(0, 100)}' not found.`, { param });
  }
  const items = first.previousId === null ? await conversations.items(owner, chain) : null;
  if (items !== null) return items;
  const missing = first.previousId ?? "a response";
  const message = `The response ${id} cannot be continued: ${missing}, which its conversation contains, is gone.`;
  throw new ServiceError("unknown_response", message, { param });
}

/** By id; those that are gone are missing. `ids`: as often as they are used. */
async function referencedItems(
  { conversations }: StoredResponses,
  owner: string,
  ids: readonly string[],
  room: ConversationRoom,
): Promise<Map<string, Item>> {
  const places: ItemPlace[] = ids.flatMap((id) => {
    const response = responseOf(id);
    return response === null ? [] : [{ id, responseId: response }];
  });
  room.count({ responses: new Set(places.map((place) => place.responseId)).size });
  const giveWay = givingWay();
  const items = new Map<string, Item>();
  for (const [id, text] of await conversations.referenced(owner, places, room)) {
    items.set(id, JSON.parse(text) as Item);
    await giveWay();
  }
  return items;
}

function gone(id: string, param: string): ServiceError {
  const message = `Item with id '${id.slice(0, 100)}' not found: its response is not stored here.`;
  return new ServiceError("unknown_response", message, { param });
}
