// Where the user writes.
import { useEffect, useRef } from "preact/hooks";
import { useShortcuts } from "../keys.ts";
import { exportChat, importChat } from "./chat-state.ts";
import { change, clear, columns, draft, isBusy, problem, regenerate, send, stop } from "./state.ts";

export function Composer() {
  const field = useRef<HTMLTextAreaElement>(null);
  const prompt = draft.value;
  const hasTalked = columns.value.length > 0;
  const submit = () => {
    if (prompt.trim() !== "" && !isBusy.value) void send(prompt);
  };
  const write = (text: string) => {
    draft.value = text;
    change({ prompt: text });
  };
  useEffect(() => field.current?.focus({ preventScroll: true }), []);
  useShortcuts([
    { keys: "/", what: "write", run: () => field.current?.focus() },
    { keys: "r", what: "ask again", run: () => hasTalked && void regenerate() },
  ]);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <p class="sr-only" role="status">
        {isBusy.value ? "Answering" : hasTalked && "Answered"}
      </p>
      <label class="sr-only" for="prompt">
        Message
      </label>
      <textarea
        id="prompt"
        ref={field}
        rows={Math.min(8, Math.max(2, prompt.split("\n").length))}
        placeholder="Say something. Enter sends, Shift+Enter starts a line."
        value={prompt}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") field.current?.blur(); // back to the shortcuts
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      <div class="row">
        {isBusy.value ? (
          <button type="button" class="danger" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="submit" class="primary" disabled={prompt.trim() === ""}>
            Send
          </button>
        )}
        <button type="button" disabled={!hasTalked || isBusy.value} onClick={() => void regenerate()}>
          Regenerate
        </button>
        <button type="button" disabled={!hasTalked} onClick={clear}>
          New chat
        </button>
        <button type="button" disabled={!hasTalked || isBusy.value} onClick={exportChat}>
          Export
        </button>
        <label class="button">
          Import
          <input
            type="file"
            class="sr-only"
            accept="application/json"
            onChange={({ currentTarget: field }) => {
              const file = field.files?.[0];
              if (file !== undefined) void importChat(file);
              field.value = "";
            }}
          />
        </label>
      </div>
    </form>
  );
}
