// A button for what cannot be undone: it asks first, in place.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface ConfirmButtonProps {
  label: string;
  /** For screen readers, if the label alone does not say what it is about. */
  name?: string;
  question: string;
  onConfirm: () => void;
}

export function ConfirmButton({ label, name, question, onConfirm }: ConfirmButtonProps) {
  const isAsking = useSignal(false);
  const no = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isAsking.value) no.current?.focus();
  }, [isAsking.value]);
  const answer = (isYes: boolean) => {
    isAsking.value = false;
    if (isYes) onConfirm();
  };
  if (!isAsking.value) {
    return (
      <button
        type="button"
        class="small danger"
        aria-label={name}
        onClick={() => {
          isAsking.value = true;
        }}
      >
        {label}
      </button>
    );
  }
  return (
    <span class="row confirm" role="alertdialog" aria-label={question}>
      {question}
      <button type="button" class="small danger" onClick={() => answer(true)}>
        Yes, {label}
      </button>
      <button type="button" class="small" ref={no} onClick={() => answer(false)}>
        No
      </button>
    </span>
  );
}
