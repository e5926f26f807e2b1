// The chats of this user in this browser: found by a word, opened, named, exported, deleted.
import { type Signal, useSignal } from "@preact/signals";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { useLocation } from "../router.ts";
import { exportChat, importChat, removeChat, rename } from "./chat-actions.ts";
import type { Head } from "./chat-record.ts";
import { heads } from "./keeping.ts";
import { chatId, hasTalked } from "./state.ts";

/** The button that opens it where there is no room for it. */
export const LIST_BUTTON = "chats-button";

export function ChatList({ isOpen }: { isOpen: Signal<boolean> }) {
  const wanted = useSignal("");
  const location = useLocation();
  const word = wanted.value.trim().toLowerCase();
  const found = heads.value.filter(
    ({ id, title, said }) =>
      (said !== "" || id === chatId.value) && (word === "" || `${title}\n${said}`.toLowerCase().includes(word)),
  );
  const remove = async (id: string) => {
    if (await removeChat(id)) location.route("/", true);
  };
  const bring = async (file: File) => {
    const id = await importChat(file);
    if (id !== null) location.route(`/?chat=${id}`);
  };
  const close = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented || !isOpen.value) return;
    event.preventDefault();
    isOpen.value = false;
    document.getElementById(LIST_BUTTON)?.focus();
  };
  return (
    <section id="chat-list" class={`chat-list ${isOpen.value ? "open" : ""}`} aria-label="Chats" onKeyDown={close}>
      <input
        type="search"
        aria-label="Search chats"
        placeholder="Search chats"
        value={wanted.value}
        onInput={(event) => {
          wanted.value = event.currentTarget.value;
        }}
      />
      <ul>
        {found.map((head) => (
          <li key={head.id}>
            <a
              href={`/?chat=${head.id}`}
              aria-current={head.id === chatId.value ? "page" : undefined}
              onClick={() => {
                isOpen.value = false;
              }}
            >
              {head.title}
            </a>
            {head.id === chatId.value && <Actions head={head} onRemove={() => void remove(head.id)} />}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="muted">{word === "" ? "No chats yet." : "No chat has these words."}</p>}
      <div class="row">
        <button type="button" class="small" disabled={!hasTalked.value} onClick={exportChat}>
          Export
        </button>
        <label class="button small">
          Import
          <input
            type="file"
            class="sr-only"
            accept="application/json"
            onChange={({ currentTarget: field }) => {
              const file = field.files?.[0];
              if (file !== undefined) void bring(file);
              field.value = "";
            }}
          />
        </label>
      </div>
    </section>
  );
}

function Actions({ head: { title }, onRemove }: { head: Head; onRemove: () => void }) {
  const isNaming = useSignal(false);
  if (isNaming.value) {
    return (
      <form
        class="row nowrap"
        onSubmit={(event) => {
          event.preventDefault();
          rename(String(new FormData(event.currentTarget).get("title")));
          isNaming.value = false;
        }}
      >
        <input name="title" aria-label="Title" defaultValue={title} ref={(field) => field?.focus()} />
        <button type="submit" class="small">
          Save
        </button>
      </form>
    );
  }
  return (
    <div class="row">
      <button
        type="button"
        class="small quiet"
        onClick={() => {
          isNaming.value = true;
        }}
      >
        rename
      </button>
      <ConfirmButton label="delete" name="Delete this chat" question="Delete this chat?" isQuiet onConfirm={onRemove} />
    </div>
  );
}
