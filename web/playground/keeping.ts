// Keeps the chat that is shown, and the list of all. The database belongs to who is signed in: it is let go when the
// session ends, and forgotten when the user signs out.
import { batch, effect, signal, untracked } from "@preact/signals";
import { me } from "../server-facts.ts";
import { apiKey, messageOf } from "../session.ts";
import {
  type Chat,
  fromRecords,
  type Head,
  headOf,
  type Kept,
  merged,
  toAnswersRecord,
  toRecord,
} from "./chat-record.ts";
import { ChatStore } from "./chat-store.ts";
import { forgetOld, importOld } from "./old-chats.ts";
import { isRunning } from "./reply.ts";
import { stop } from "./running.ts";
import { DEFAULTS } from "./settings.ts";
import { type Changes, chat, draft, editing, emptyChat, isBusy, problem, settings, whenChanged } from "./state.ts";
import type { Answers, Turn, TurnId } from "./tree.ts";

/** All chats of this user in this browser, the newest first. */
export const heads = signal<readonly Head[]>([]);
/** True once the chat has a record, and its address a name. */
export const isKept = signal(false);

/** How long after a change it is kept; changes come with every key. */
const SOON_MS = 250;
/** How often answers that run are kept. */
const SO_FAR_MS = 1_000;

let store: ChatStore | null = null;
/** Resolves when somebody is signed in. */
let opened = awaited();
const unsaved = { answers: new Set<TurnId>(), gone: new Set<TurnId>() };
let deleted: readonly TurnId[] = [];
/** The chat as it was kept last: what changed since may be the draft alone. */
let written: Chat | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let saving: Promise<void> = Promise.resolve();

function awaited(): { promise: Promise<ChatStore>; resolve: (store: ChatStore) => void } {
  let resolve: (store: ChatStore) => void = () => {};
  const promise = new Promise<ChatStore>((found) => {
    resolve = found;
  });
  return { promise, resolve };
}

/** Resolves when somebody is signed in. Presets are kept there too. */
export function chatStore(): Promise<ChatStore> {
  return opened.promise;
}

/** Before another chat is shown: what runs is stopped, and all is kept. */
export async function leave(): Promise<void> {
  await stop();
  await save();
}

/** Forgets a chat. What of it is not kept yet is not kept any more. */
export async function forgetChat(id: string): Promise<void> {
  if (id === chat.value.id) {
    await stop();
    clearTimeout(timer);
    timer = undefined;
    await saving;
    show({ chat: emptyChat(), settings: settings.value, draft: "", deleted: [] }, false);
  }
  heads.value = heads.value.filter((head) => head.id !== id);
  await (await opened.promise).remove(id);
}

export function followUser(): void {
  whenChanged(noteChange);
  let user: string | null = null;
  effect(() => {
    const name = me.value === null ? null : `flywheel.chats ${me.value.workspace.id} ${me.value.id}`;
    if (name === user) return;
    user = name;
    store?.close();
    store = null;
    if (name === null) return;
    const own = new ChatStore(name, (id) => void adopt(id));
    const { resolve } = opened;
    store = own;
    void importOld(own).then(() => {
      resolve(own);
      return loadHeads();
    });
  });
  effect(() => {
    if (apiKey.value === null) untracked(forgetShown);
  });
  effect(() => {
    if (!isBusy.value) return;
    const ticks = setInterval(keepSoFar, SO_FAR_MS);
    return () => clearInterval(ticks);
  });
  addEventListener("pagehide", keepSoFar);
  document.addEventListener("visibilitychange", () => void save());
}

/** Answers that run, as far as they have come: whoever reloads the page finds them stopped there. */
function keepSoFar(): void {
  for (const turn of chat.value.turns.values()) {
    if (turn.kind === "answers" && isRunning(turn.exchange)) unsaved.answers.add(turn.id);
  }
  void save();
}

/** The next user must see nothing of this one's. */
function forgetShown(): void {
  void stop();
  clearTimeout(timer);
  timer = undefined;
  store?.close();
  store = null;
  opened = awaited();
  saving = Promise.resolve();
  show({ chat: emptyChat(), settings: DEFAULTS, draft: "", deleted: [] }, false);
  heads.value = [];
}

/** What this user has in this browser goes with the session. */
export async function forgetAll(): Promise<void> {
  const [own, pending] = [store, saving];
  forgetShown();
  forgetOld();
  if (own !== null) await pending;
  await own?.destroy().catch(() => {}); // a browser without a database has kept nothing
}

/** Shows another chat. `hasRecord`: it has an address, and even its emptiness is kept. */
export function show(kept: Kept, hasRecord: boolean): void {
  unsaved.answers.clear();
  unsaved.gone.clear();
  deleted = kept.deleted;
  written = hasRecord && kept.chat.turns.size > 0 ? kept.chat : null;
  batch(() => {
    chat.value = kept.chat;
    settings.value = kept.settings;
    draft.value = kept.draft;
    editing.value = null;
    problem.value = null;
    isKept.value = hasRecord;
  });
}

export function noteChange({ answers, gone }: Changes): void {
  for (const id of answers) unsaved.answers.add(id);
  for (const id of gone) unsaved.gone.add(id);
  deleted = gone.length === 0 ? deleted : [...deleted, ...gone];
  const isUrgent = answers.length > 0 || gone.length > 0;
  if (isUrgent) void save();
  else timer ??= setTimeout(() => void save(), SOON_MS);
}

/** One after the other, so that an older state never follows a newer one. */
function save(): Promise<void> {
  const isDue = timer !== undefined || unsaved.answers.size > 0 || unsaved.gone.size > 0;
  clearTimeout(timer);
  timer = undefined;
  if (!isDue) return saving;
  const now: Kept = { chat: chat.value, settings: settings.value, draft: editing.value?.draft ?? draft.value, deleted };
  const isWorthIt = isKept.value || now.chat.turns.size > 0 || now.draft !== "";
  if (!isWorthIt) return saving;
  const turns = [...unsaved.answers].map((id) => now.chat.turns.get(id));
  const changed = turns.filter((turn) => turn?.kind === "answers");
  const gone = [...unsaved.gone];
  unsaved.answers.clear();
  unsaved.gone.clear();
  const target = opened.promise; // a later user has another
  saving = saving.then(async () => keep(await target, now, changed, gone));
  return saving;
}

async function keep(own: ChatStore, now: Kept, changed: readonly Answers[], gone: readonly TurnId[]): Promise<void> {
  const answers = changed.map((turn) => toAnswersRecord(now.chat.id, turn));
  const { chat: shown, draft: text, settings: set } = now;
  const isDraftOnly = shown === written && answers.length + gone.length === 0;
  const head = isDraftOnly ? null : headOf(now);
  try {
    if (head === null) return await own.writeDraft({ id: shown.id, draft: text, settings: set });
    await own.write(head, toRecord(now), answers, gone);
    if (chat.value.id === shown.id) written = shown.turns.size > 0 ? shown : null; // before, its title is the draft
  } catch (error) {
    problem.value = `The browser could not keep this conversation: ${messageOf(error)} Export it to a file.`;
    return;
  }
  heads.value = [head, ...heads.value.filter(({ id }) => id !== head.id)].sort((a, b) => b.at - a.at);
  if (chat.value.id === now.chat.id) isKept.value = true;
}

async function loadHeads(): Promise<void> {
  const own = await opened.promise;
  const found = await own.heads().catch(() => []);
  if (own === store) heads.value = found;
}

/** Chats that other tabs have changed since they were read here. */
const missed = new Set<string>();

/** What another tab has added to the chat that is shown. */
async function adopt(id: string): Promise<void> {
  missed.add(id);
  await loadHeads();
  await catchUp(id);
}

/** Adopts what another tab has changed, also while the chat was being opened here. */
export async function catchUp(id: string): Promise<void> {
  if (id !== chat.value.id || !missed.delete(id)) return;
  const found = await store?.read(id);
  if (found === undefined || id !== chat.value.id) return;
  if (found === null) return forgetDeleted();
  const mine = toRecord({ chat: chat.value, settings: settings.value, draft: draft.value, deleted });
  // what still runs there comes when it is done
  const over = found.answers.filter(({ exchange }) => !isRunning(exchange));
  const both = fromRecords(merged(mine, found.record), over);
  deleted = both.deleted;
  const turns = new Map<TurnId, Turn>();
  for (const turn of both.chat.turns.values()) turns.set(turn.id, turn);
  for (const turn of chat.value.turns.values()) {
    // an answer that runs here has no record yet, and what was carried on there is longer
    const other = turns.get(turn.id);
    const isLonger = other?.kind === "answers" && turn.kind === "answers" && lengthOf(other) > lengthOf(turn);
    if (!deleted.includes(turn.id) && !isLonger) turns.set(turn.id, turn);
  }
  chat.value = { ...chat.value, turns, columns: both.chat.columns };
}

/** What another tab has deleted must not come back from here. What is being written stays. */
function forgetDeleted(): void {
  if (!isKept.value) return; // it was never kept: there was nothing to delete
  void stop();
  show({ chat: emptyChat(), settings: settings.value, draft: draft.value, deleted: [] }, false);
  problem.value = "This chat was deleted in another tab.";
}

function lengthOf({ exchange: { replies } }: Answers): number {
  return replies.reduce((sum, { tokenIds }) => sum + 1 + tokenIds.length, 0);
}
