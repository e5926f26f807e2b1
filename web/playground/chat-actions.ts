// What can be done with chats: open, begin, name, delete, branch, export, import.
import { messageOf } from "../session.ts";
import { fromFile, toFile } from "./chat-file.ts";
import { fromRecords } from "./chat-record.ts";
import { catchUp, chatStore, forgetChat, leave, noteChange, show } from "./keeping.ts";
import { DEFAULTS, type Settings } from "./settings.ts";
import { chat, draft, emptyChat, problem, settings, update } from "./state.ts";
import { type Round, type Turn, type TurnId, without } from "./tree.ts";

const NOT_HERE = "This browser does not have the conversation of this address. Import it from a file, or ask again.";

/** Counts chats that were asked for: only the newest is shown. */
let opening = 0;

/** Shows the chat with this id; a sentence says so if there is none. */
export async function openChat(id: string, over: Partial<Settings>): Promise<void> {
  if (id === chat.value.id) {
    settings.value = { ...settings.value, ...over };
    return;
  }
  const turn = ++opening;
  await leave();
  const own = await chatStore();
  const found = await own.read(id).catch(() => null);
  if (turn !== opening) return; // another was opened meanwhile
  if (found === null) {
    show({ chat: { ...emptyChat(), id }, settings: { ...DEFAULTS, ...over }, draft: "", deleted: [] }, false);
    problem.value = NOT_HERE;
    return;
  }
  const kept = fromRecords(found.record, found.answers);
  show({ ...kept, settings: { ...kept.settings, ...over } }, true);
  await catchUp(id);
}

/** An empty chat with the settings of this one, kept at once: it has an address from the start. Returns its id. */
export async function newChat(part: Partial<Settings> = {}, text = ""): Promise<string> {
  opening += 1;
  const now = settings.value;
  await leave();
  show({ chat: emptyChat(), settings: { ...now, ...part }, draft: text, deleted: [] }, true);
  noteChange({ answers: [], gone: [] });
  return chat.value.id;
}

/** Settings of an address for a chat that has said nothing yet. */
export function take(part: Settings, text: string): void {
  settings.value = part;
  draft.value = text;
}

export function rename(title: string): void {
  update({ title: title.trim() === "" ? null : title.trim() });
}

/** Returns whether it was the one that is shown. */
export async function removeChat(id: string): Promise<boolean> {
  const isShown = id === chat.value.id;
  await forgetChat(id);
  return isShown;
}

export function removeTurn(id: TurnId): void {
  const { turns, columns, gone } = without(chat.value.turns, chat.value.columns, id);
  const startsAt = gone.includes(chat.value.startsAt ?? "") ? null : chat.value.startsAt;
  update({ turns, columns, startsAt }, { gone });
}

/** A chat of its own with what was said up to here. Returns its id. */
export async function branch(rounds: readonly Round[]): Promise<string> {
  const { startsAt, title } = chat.value;
  const now = settings.value;
  await leave();
  const turns = new Map<TurnId, Turn>();
  const picks: Record<string, string> = {};
  let fork = "";
  for (const { question, answers, reply } of rounds) {
    turns.set(question.id, question);
    picks[fork] = question.id;
    if (answers === null) continue;
    turns.set(answers.id, answers);
    fork = `${answers.id}:${reply}`;
    picks[question.id] = fork;
  }
  const made = { ...emptyChat(), title, turns, columns: [{ picks }], startsAt };
  const one = { ...now, models: now.models.slice(0, 1) };
  show({ chat: made, settings: one, draft: "", deleted: [] }, true);
  noteChange({ answers: [...turns.keys()], gone: [] });
  return made.id;
}

export function exportChat(): void {
  const link = document.createElement("a");
  const text = toFile({ chat: chat.value, settings: settings.value, draft: draft.value, deleted: [] });
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = `flywheel-chat-${chat.value.id}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Returns the id of the chat that the file has; null if it has none, which is said. */
export async function importChat(file: File): Promise<string | null> {
  try {
    const kept = fromFile(await file.text());
    await leave();
    show(kept, true);
    noteChange({ answers: [...kept.chat.turns.keys()], gone: [] });
    return kept.chat.id;
  } catch (error) {
    problem.value = messageOf(error);
    return null;
  }
}
