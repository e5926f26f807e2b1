// Where the user writes: a new message, or an earlier one anew.
import { useEffect, useRef } from "preact/hooks";
import { useShortcuts } from "../keys.ts";
import { may, me } from "../server-facts.ts";
import { endEditing, regenerate, send } from "./asking.ts";
import { ContextFill, ContextNotice } from "./context-fill.tsx";
import { stop } from "./running.ts";
import { chatId, draft, editing, hasTalked, isBusy, problem, write } from "./state.ts";

const MOST_ROWS = 8;

export function Composer() {
  const field = useRef<HTMLTextAreaElement>(null);
  const prompt = draft.value;
  const mayAsk = me.value === null || may("inference");
  const canSend = prompt.trim() !== "" && !isBusy.value && mayAsk;
  const isEditing = editing.value !== null;
  useEffect(() => field.current?.focus({ preventScroll: true }), [editing.value?.question, chatId.value]);
  useShortcuts([
    { keys: "/", what: "write", run: () => field.current?.focus() },
    { keys: "r", what: "ask again", run: () => hasTalked.value && !isBusy.value && void regenerate() },
  ]);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) void send();
      }}
    >
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {!mayAsk && <p class="problem">This token may not ask models: it lacks the scope "inference".</p>}
      <ContextNotice />
      <p class="sr-only" role="status">
        {isBusy.value ? "Answering" : hasTalked.value && "Answered"}
      </p>
      {isEditing && (
        <p class="row editing">
          The message is asked anew; the old one stays as another version.
          <button type="button" class="small" onClick={endEditing}>
            Cancel
          </button>
        </p>
      )}
      <label class="sr-only" for="prompt">
        Message
      </label>
      <textarea
        id="prompt"
        ref={field}
        dir="auto"
        rows={Math.min(MOST_ROWS, Math.max(2, prompt.split("\n", MOST_ROWS).length))}
        placeholder="Say something. Enter sends, Shift+Enter starts a line."
        value={prompt}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          // what runs may have been stopped by this very key
          if (event.key === "Escape" && !event.defaultPrevented && !isBusy.value) {
            if (isEditing) endEditing();
            else field.current?.blur(); // back to the shortcuts
          }
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          if (canSend) void send();
        }}
      />
      <div class="row">
        {isBusy.value ? (
          <button
            type="button"
            class="danger"
            title="Escape"
            onClick={() => {
              void stop();
              field.current?.focus();
            }}
          >
            Stop
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!canSend}>
            Send
          </button>
        )}
        {hasTalked.value && !isEditing && (
          <button type="button" disabled={isBusy.value || !mayAsk} onClick={() => void regenerate()}>
            Regenerate
          </button>
        )}
        <span class="spring" />
        <ContextFill />
      </div>
    </form>
  );
}
