// Talk to a model, or to several side by side: chats at the left, the conversation in the middle, settings at the right.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useTitle } from "../parts/use-title.ts";
import { newChat, openChat, take } from "../playground/chat-actions.ts";
import { ChatList } from "../playground/chat-list.tsx";
import { ColumnView } from "../playground/column-view.tsx";
import { Composer } from "../playground/composer.tsx";
import { isKept } from "../playground/keeping.ts";
import { ManyPrompts } from "../playground/many-prompts.tsx";
import { stop } from "../playground/running.ts";
import { fromQuery, overrides } from "../playground/settings.ts";
import { SettingsDrawer } from "../playground/settings-drawer.tsx";
import { chatId, hasTalked, isBusy, settings, sides, title } from "../playground/state.ts";
import { TeachPanel } from "../playground/teach-panel.tsx";
import { Thread } from "../playground/thread.tsx";
import { TimeMachine } from "../playground/time-machine.tsx";
import { TopBar } from "../playground/top-bar.tsx";
import { useLocation } from "../router.ts";

export function Playground() {
  useTitle(title.value);
  useAddress();
  useEscape();
  const isListOpen = useSignal(false);
  const isDrawerOpen = useSignal(false);
  return (
    <div class="playground">
      <h1 class="sr-only">Playground</h1>
      <ChatList isOpen={isListOpen} />
      <div class="stage">
        <TopBar isListOpen={isListOpen} isDrawerOpen={isDrawerOpen} />
        <Conversation />
        <Composer />
      </div>
      <SettingsDrawer isOpen={isDrawerOpen} />
    </div>
  );
}

function Conversation() {
  const { panel } = settings.value;
  const asked = sides.value.map(({ rounds }) => rounds.at(-1)?.answers?.id ?? "").join();
  return (
    <Thread asked={`${chatId.value} ${asked}`}>
      {hasTalked.value ? (
        <div class="columns">
          {sides.value.map((side, i) => (
            <ColumnView key={i} side={side} index={i} />
          ))}
        </div>
      ) : (
        <Welcome />
      )}
      {panel === "teach" && <TeachPanel />}
      {panel === "time" && <TimeMachine />}
      {panel === "many" && <ManyPrompts />}
    </Thread>
  );
}

/**
 * The address names the chat. Settings in an address are taken once: for a new chat, or over those of the chat that it names. The
 * bare address is the way back from another page, to the chat that was shown.
 */
function useAddress(): void {
  const { url, route } = useLocation();
  const isRead = useRef(false);
  useEffect(() => {
    const query = new URL(url, location.origin).search.slice(1);
    const { settings: said, draft, chat: id } = fromQuery(query);
    isRead.current = true;
    if (id !== "") void openChat(id, overrides(query));
    else if (query !== "") {
      if (hasTalked.peek()) void newChat(said, draft);
      else take(said, draft);
    }
  }, [url]);
  const wanted = `/?chat=${chatId.value}`;
  const isShown = isKept.value;
  useEffect(() => {
    // a chat gets its address when it is kept
    const { pathname, search } = location;
    const hasNoName = !new URLSearchParams(search).has("chat");
    if (isRead.current && isShown && pathname === "/" && hasNoName) route(wanted, true);
  }, [wanted, isShown, url]);
}

/** Escape stops wherever the focus is. */
function useEscape(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.isComposing || !isBusy.peek()) return;
      event.preventDefault();
      void stop();
    };
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, []);
}

function Welcome() {
  return (
    <div class="welcome">
      <p>Nothing said yet.</p>
      <p class="muted">
        Conversations stay in this browser. Compare models side by side, ask for several answers at once, or teach the
        model something. Press <kbd>?</kbd> for the keyboard.
      </p>
    </div>
  );
}
