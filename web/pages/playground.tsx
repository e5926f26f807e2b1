// Talk to a model, or to several side by side.

import { useEffect, useRef } from "preact/hooks";
import { useTitle } from "../parts/use-title.ts";
import { followChat, openChat } from "../playground/chat-state.ts";
import { ColumnView } from "../playground/column-view.tsx";
import { Composer } from "../playground/composer.tsx";
import { ManyPrompts } from "../playground/many-prompts.tsx";
import { OutputEditor } from "../playground/output-editor.tsx";
import { fromQuery, toQuery } from "../playground/settings.ts";
import { SidePanel } from "../playground/side-panel.tsx";
import { change, columns, draft, settings } from "../playground/state.ts";
import { TeachPanel } from "../playground/teach-panel.tsx";
import { TimeMachine } from "../playground/time-machine.tsx";
import { Toolbar } from "../playground/toolbar.tsx";
import { ViewChoice } from "../playground/view-choice.tsx";
import { useLocation } from "../router.ts";

export function Playground() {
  useTitle("Playground");
  useAddress();
  const { panel } = settings.value;
  return (
    <div class="playground">
      <h1 class="sr-only">Playground</h1>
      <div class="stage">
        <Toolbar />
        <div class="row options">
          <System />
          <OutputEditor />
        </div>
        <ViewChoice />
        <div class="columns">
          {columns.value.length === 0 ? (
            <Welcome />
          ) : (
            columns.value.map((column, i) => <ColumnView key={i} column={column} index={i} />)
          )}
        </div>
        {panel === "teach" && <TeachPanel />}
        {panel === "time" && <TimeMachine />}
        {panel === "many" && <ManyPrompts />}
        <Composer />
      </div>
      <SidePanel />
    </div>
  );
}

/**
 * The address says what is set, and settings change the address, without an entry in the history for every letter. The bare
 * address keeps what is set: it is the way back from another page.
 */
function useAddress(): void {
  const { url } = useLocation();
  const isRead = useRef(false);
  useEffect(() => {
    const query = new URL(url, location.origin).search.slice(1);
    if (query !== "") {
      settings.value = fromQuery(query);
      draft.value = settings.value.prompt;
      openChat(settings.value.chat);
    }
    isRead.current = true;
  }, [url]);
  useEffect(followChat, []);
  void settings.value; // draws this again when they change
  useEffect(() => {
    if (!isRead.current || location.pathname !== "/") return;
    // as they are now: the effect above may have read them from the address
    const query = toQuery(settings.peek());
    const address = query === "" ? "/" : `/?${query}`;
    if (location.pathname + location.search !== address) history.replaceState(history.state, "", address);
  });
}

function System() {
  const { system } = settings.value;
  return (
    <details class="system" open={system !== ""}>
      <summary>System message</summary>
      <label class="sr-only" for="system">
        System message
      </label>
      <textarea
        id="system"
        rows={2}
        value={system}
        onInput={(event) => change({ system: event.currentTarget.value })}
      />
    </details>
  );
}

function Welcome() {
  return (
    <div class="welcome">
      <p>Nothing said yet.</p>
      <p class="muted">
        Add a model to compare, or ask for several answers at once. Every setting is in the address, so a link shares
        it. The conversation stays in this browser; export it to carry it elsewhere. Press <kbd>?</kbd> for the
        keyboard.
      </p>
    </div>
  );
}
