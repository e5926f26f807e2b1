// The tags of a policy or a job, and the note on it, with a form to change them in place.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { messageOf } from "../session.ts";
import { type Note, saveNote, tagsFrom } from "./notes.ts";

export interface NoteLineProps {
  note: Note | undefined;
  /** Of the policy or the job, below /v1. */
  path: string;
  onSaved: () => void;
}

export function NoteLine({ note, path, onSaved }: NoteLineProps) {
  const isOpen = useSignal(false);
  const opener = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (!isOpen.value && wasOpen.current) opener.current?.focus();
    wasOpen.current = isOpen.value;
  }, [isOpen.value]);
  const close = () => {
    isOpen.value = false;
  };
  if (isOpen.value) return <NoteForm {...{ note, path, close, onSaved }} />;
  return (
    <div class="row note-line">
      <Tags note={note} />
      {note !== undefined && note.text !== "" && <span class="note-text">{note.text}</span>}
      <button
        ref={opener}
        type="button"
        class="small quiet"
        onClick={() => {
          isOpen.value = true;
        }}
      >
        {note === undefined ? "Add tags or a note" : "Edit tags and note"}
      </button>
    </div>
  );
}

export function Tags({ note }: { note: Note | undefined }) {
  return (
    <>
      {note?.tags.map((tag) => (
        <span key={tag} class="chip tag">
          {tag}
        </span>
      ))}
    </>
  );
}

interface NoteFormProps extends NoteLineProps {
  close: () => void;
}

function NoteForm({ note, path, close, onSaved }: NoteFormProps) {
  const problem = useSignal<string | null>(null);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    try {
      await saveNote(path, { tags: tagsFrom(String(form.get("tags"))), text: String(form.get("text")).trim() });
      onSaved();
      close();
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <form
      class="note-form"
      onSubmit={submit}
      onKeyDown={({ key }) => {
        if (key === "Escape") close();
      }}
    >
      <label>
        <span>tags</span>
        <input
          ref={first}
          name="tags"
          defaultValue={note?.tags.join(", ")}
          placeholder="good, sweep-3"
          autocomplete="off"
        />
      </label>
      <label>
        <span>note</span>
        <textarea name="text" rows={3} maxLength={2000} defaultValue={note?.text} />
      </label>
      <p class="row">
        <button type="submit" class="small">
          Save
        </button>
        <button type="button" class="small" onClick={close}>
          Cancel
        </button>
        <span class="problem" role="alert">
          {problem.value}
        </span>
      </p>
    </form>
  );
}
