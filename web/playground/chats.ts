// Conversations have an address: the browser keeps them under an id that the address names. To show one elsewhere, it is
// exported as a file and imported there.
import type { Column } from "./state.ts";

const PREFIX = "flywheel.chat.";
/** The oldest go first. */
const MOST_CHATS = 50;

interface Chat {
  object: "flywheel.chat";
  /** When it changed last, in milliseconds since 1970. */
  at: number;
  /** The settings, as the address has them. */
  query: string;
  columns: readonly Column[];
}

export function newId(): string {
  return crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36);
}

export function chatText(query: string, columns: readonly Column[]): string {
  const chat: Chat = { object: "flywheel.chat", at: Date.now(), query, columns };
  return JSON.stringify(chat);
}

/** Throws a sentence if the text is no conversation. */
export function chatFrom(text: string): Pick<Chat, "query" | "columns"> {
  const chat = JSON.parse(text) as Partial<Chat> | null;
  const isChat = chat?.object === "flywheel.chat" && Array.isArray(chat.columns) && typeof chat.query === "string";
  if (!isChat) throw new Error("The file is no conversation of this page.");
  return chat as Chat;
}

/** Makes room if the browser has none left. Returns false if there is none even then. */
export function keepChat(id: string, text: string): boolean {
  const others = keptIds().filter((one) => one !== id);
  for (const old of others.slice(0, Math.max(0, others.length - MOST_CHATS + 1))) localStorage.removeItem(PREFIX + old);
  for (const old of [...others, null]) {
    try {
      localStorage.setItem(PREFIX + id, text);
      return true;
    } catch {
      if (old !== null) localStorage.removeItem(PREFIX + old); // full: the next oldest goes
    }
  }
  return false;
}

/** Null if this browser has none of that id. */
export function keptChat(id: string): string | null {
  return localStorage.getItem(PREFIX + id);
}

export function forgetChats(): void {
  for (const id of keptIds()) localStorage.removeItem(PREFIX + id);
}

/** The oldest first. */
function keptIds(): string[] {
  const ids = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  const at = (key: string) => Number(/"at":(\d+)/.exec(localStorage.getItem(key) ?? "")?.[1] ?? 0);
  return ids.sort((one, other) => at(one) - at(other)).map((key) => key.slice(PREFIX.length));
}
