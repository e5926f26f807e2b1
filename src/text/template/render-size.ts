// How much a template is given, to tell before rendering whether it may take long.

import { isJsonObject } from "../../json/json.ts";
import type { RenderInput } from "../chat-template.ts";

/** Some templates take quadratic time: 400 ms for 1,000 messages, 3 ms for 50. */
const LONG_CONVERSATION = 64;
/** Numbers, texts, lists and objects: 10 ms where a template prints them. */
const MANY_VALUES = 2_000;
/** Characters of all texts. */
const LONG_TEXTS = 262_144;

/** Whether rendering may take longer than the main thread can wait. Looks at no more than it needs to know. */
export function isLongToRender({ messages, tools, documents, kwargs }: RenderInput): boolean {
  if (messages.length >= LONG_CONVERSATION) return true;
  let values = 0;
  let characters = 0;
  const waiting: unknown[] = [messages, tools, documents, kwargs];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") characters += value.length;
    const inner = Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : [];
    values += inner.length;
    if (values > MANY_VALUES || characters > LONG_TEXTS) return true;
    for (const item of inner) waiting.push(item);
  }
  return false;
}
