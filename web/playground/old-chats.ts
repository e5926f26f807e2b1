// Chats that earlier versions of the page kept in localStorage. They are brought into the database once.
import { fromFile } from "./chat-file.ts";
import { headOf, toAnswersRecord, toRecord } from "./chat-record.ts";
import type { ChatStore } from "./chat-store.ts";

const PREFIX = "flywheel.chat.";

/** Brings them into the database. */
export async function importOld(own: ChatStore): Promise<void> {
  for (const key of oldKeys()) {
    try {
      const kept = fromFile(localStorage.getItem(key)!);
      const id = key.slice(PREFIX.length);
      const at = Number(/"at":(\d+)/.exec(localStorage.getItem(key)!)?.[1] ?? Date.now());
      const now = { ...kept, chat: { ...kept.chat, id, at } };
      const turns = [...now.chat.turns.values()].filter((turn) => turn.kind === "answers");
      const answers = turns.map((turn) => toAnswersRecord(id, turn));
      await own.write(headOf(now), toRecord(now), answers, []);
    } catch {
      continue; // it stays where it is: nothing is dropped that could not be kept
    }
    localStorage.removeItem(key);
  }
}

export function forgetOld(): void {
  for (const key of oldKeys()) localStorage.removeItem(key);
}

function oldKeys(): string[] {
  return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
}
