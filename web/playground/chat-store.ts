// The browser's database of chats (IndexedDB): one per workspace and token, so that nobody sees what another token has said.
// Tabs tell each other when a chat has changed.
import { type AnswersRecord, type ChatRecord, type Head, merged } from "./chat-record.ts";
import type { Settings } from "./settings.ts";
import type { TurnId } from "./tree.ts";

const VERSION = 1;
const STORES = ["heads", "chats", "drafts", "answers", "presets"] as const;

/** What changes with every key: apart from the rest, so that a word more in the box does not write all that was said. */
export type Draft = Pick<ChatRecord, "id" | "draft" | "settings">;

export interface Preset {
  name: string;
  settings: Partial<Settings>;
}

export class ChatStore {
  readonly #name: string;
  readonly #tabs: BroadcastChannel;
  #database: Promise<IDBDatabase> | null = null;

  /** `onChange` is told of chats that another tab has changed. */
  constructor(name: string, onChange: (id: string) => void) {
    this.#name = name;
    this.#tabs = new BroadcastChannel(name);
    this.#tabs.onmessage = ({ data }) => onChange(String(data));
  }

  /** The newest first. */
  async heads(): Promise<Head[]> {
    const found = await this.#run("readonly", (stores) => stores.heads.getAll() as IDBRequest<Head[]>);
    return found.sort((a, b) => b.at - a.at);
  }

  /** Null if there is none of that id. */
  async read(id: string): Promise<{ record: ChatRecord; answers: AnswersRecord[] } | null> {
    let answers: IDBRequest<AnswersRecord[]> | undefined;
    let draft: IDBRequest<Draft | undefined> | undefined;
    const record = await this.#run("readonly", (stores) => {
      draft = stores.drafts.get(id) as IDBRequest<Draft | undefined>;
      answers = stores.answers.getAll(IDBKeyRange.bound([id], [id, []])) as IDBRequest<AnswersRecord[]>;
      return stores.chats.get(id) as IDBRequest<ChatRecord | undefined>;
    });
    return record === undefined ? null : { record: { ...record, ...draft!.result }, answers: answers!.result };
  }

  /** Keeps a chat together with what another tab has made of it. */
  async write(
    head: Head,
    record: ChatRecord,
    changed: readonly AnswersRecord[],
    gone: readonly TurnId[],
  ): Promise<void> {
    await this.#run("readwrite", (stores) => {
      for (const one of changed) stores.answers.put(one);
      for (const id of gone) stores.answers.delete([head.id, id]);
      stores.heads.put(head);
      stores.drafts.put({ id: head.id, draft: record.draft, settings: record.settings } satisfies Draft);
      const found = stores.chats.get(head.id) as IDBRequest<ChatRecord | undefined>;
      found.onsuccess = () => {
        stores.chats.put(found.result === undefined ? record : merged(record, found.result));
      };
      return found;
    });
    this.#tabs.postMessage(head.id);
  }

  async writeDraft(draft: Draft): Promise<void> {
    await this.#run("readwrite", (stores) => stores.drafts.put(draft));
  }

  async remove(id: string): Promise<void> {
    await this.#run("readwrite", (stores) => {
      stores.heads.delete(id);
      stores.drafts.delete(id);
      stores.answers.delete(IDBKeyRange.bound([id], [id, []]));
      return stores.chats.delete(id);
    });
    this.#tabs.postMessage(id);
  }

  presets(): Promise<Preset[]> {
    return this.#run("readonly", (stores) => stores.presets.getAll() as IDBRequest<Preset[]>);
  }

  async putPreset(preset: Preset): Promise<void> {
    await this.#run("readwrite", (stores) => stores.presets.put(preset));
  }

  async removePreset(name: string): Promise<void> {
    await this.#run("readwrite", (stores) => stores.presets.delete(name));
  }

  close(): void {
    this.#tabs.close();
    void this.#database?.then((database) => database.close());
    this.#database = null;
  }

  /** Forgets everything. Other tabs let go of the database by themselves. */
  async destroy(): Promise<void> {
    this.close();
    await done(indexedDB.deleteDatabase(this.#name));
  }

  /** Resolves with the result of the request when all of the transaction is kept. */
  async #run<Result>(
    mode: IDBTransactionMode,
    work: (stores: Record<(typeof STORES)[number], IDBObjectStore>) => IDBRequest<Result>,
  ): Promise<Result> {
    const database = await this.#open();
    const transaction = database.transaction([...STORES], mode);
    const stores = Object.fromEntries(STORES.map((name) => [name, transaction.objectStore(name)]));
    const request = work(stores as Record<(typeof STORES)[number], IDBObjectStore>);
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("The browser kept nothing."));
    });
    return request.result;
  }

  #open(): Promise<IDBDatabase> {
    this.#database ??= openDatabase(this.#name, () => {
      this.#database = null;
    });
    this.#database.catch(() => {
      this.#database = null; // it is tried again next time
    });
    return this.#database;
  }
}

async function openDatabase(name: string, onClose: () => void): Promise<IDBDatabase> {
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("heads", { keyPath: "id" });
    request.result.createObjectStore("chats", { keyPath: "id" });
    request.result.createObjectStore("drafts", { keyPath: "id" });
    request.result.createObjectStore("answers", { keyPath: ["chat", "id"] });
    request.result.createObjectStore("presets", { keyPath: "name" });
  };
  const database = await done(request);
  database.onversionchange = () => {
    database.close();
    onClose();
  };
  database.onclose = onClose;
  return database;
}

function done<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser's database failed."));
  });
}
