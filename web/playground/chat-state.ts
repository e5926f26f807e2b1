// The conversation of the address: kept when it changes, shown again when the address names it, and carried in files.
import { effect } from "@preact/signals";
import { messageOf } from "../session.ts";
import { chatFrom, chatText, keepChat, keptChat, newId } from "./chats.ts";
import { fromQuery, toQuery } from "./settings.ts";
import { change, columns, draft, isBusy, problem, settings, stop } from "./state.ts";

const NOT_HERE =
  "This browser does not have the conversation of this address, only its settings. Import it from a file, or ask again.";
const NO_ROOM = "The browser has no room left to keep this conversation. Export it to a file.";

/** The conversation whose columns are shown; empty: none yet. */
let shown = "";

/** Keeps the conversation whenever an answer is complete. Returns what ends that. */
export function followChat(): () => void {
  return effect(() => {
    const now = columns.value;
    if (isBusy.value || !now.some(({ exchange }) => exchange !== null)) return;
    // peek: what is typed into the box is not worth keeping at every key
    const id = settings.peek().chat || newId();
    shown = id;
    if (settings.peek().chat !== id) change({ chat: id });
    if (!keepChat(id, chatText(toQuery(settings.peek()), now))) problem.value = NO_ROOM;
  });
}

/** Shows the conversation with this id, unless it is shown already. */
export function openChat(id: string): void {
  if (id === "" || id === shown) return;
  stop();
  shown = id;
  const text = keptChat(id);
  columns.value = text === null ? [] : chatFrom(text).columns;
  problem.value = text === null ? NOT_HERE : null;
}

export function exportChat(): void {
  const link = document.createElement("a");
  const text = chatText(toQuery(settings.value), columns.value);
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = `flywheel-chat-${settings.value.chat}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

export async function importChat(file: File): Promise<void> {
  try {
    const chat = chatFrom(await file.text());
    stop();
    shown = newId();
    settings.value = { ...fromQuery(chat.query), chat: shown };
    draft.value = "";
    problem.value = null;
    columns.value = chat.columns;
  } catch (error) {
    problem.value = messageOf(error);
  }
}
