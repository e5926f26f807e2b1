// A button for what cannot be undone: it asks first, in place. It looks like any other until then; red is for the answer.
import { useQuestion } from "./use-question.ts";

export interface ConfirmButtonProps {
  label: string;
  /** For screen readers, if the label alone does not say what it is about. */
  name?: string;
  question: string;
  /** It stands among words that look alike. */
  isQuiet?: boolean;
  onConfirm: () => void;
}

export function ConfirmButton({ label, name, question, isQuiet = false, onConfirm }: ConfirmButtonProps) {
  const { isAsking, place, onKeyDown } = useQuestion();
  const answer = (isYes: boolean) => {
    isAsking.value = false;
    if (isYes) onConfirm();
  };
  if (!isAsking.value) {
    return (
      <button
        ref={place}
        type="button"
        class={isQuiet ? "small quiet" : "small"}
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
    <span class="row" role="alertdialog" aria-label={question} onKeyDown={onKeyDown}>
      {question}
      <button type="button" class="small danger" onClick={() => answer(true)}>
        Yes, {label}
      </button>
      <button type="button" class="small" ref={place} onClick={() => answer(false)}>
        No
      </button>
    </span>
  );
}
