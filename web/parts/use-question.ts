// A question in the place of the button that asks it. The focus goes to the answer that changes nothing, and back to the
// button. Escape takes the question back.
import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A reference to it fits both. */
type ButtonOrField = HTMLButtonElement & HTMLInputElement;

export interface Question {
  isAsking: Signal<boolean>;
  /** For the button, and for what gets the focus while it asks. */
  place: RefObject<ButtonOrField | null>;
  onKeyDown: (event: KeyboardEvent) => void;
}

export function useQuestion(): Question {
  const isAsking = useSignal(false);
  const place = useRef<ButtonOrField>(null);
  const wasAsked = useRef(false);
  useEffect(() => {
    if (isAsking.value || wasAsked.current) place.current?.focus();
    wasAsked.current = isAsking.value;
  }, [isAsking.value]);
  const onKeyDown = ({ key }: KeyboardEvent) => {
    if (key === "Escape") isAsking.value = false;
  };
  return { isAsking, place, onKeyDown };
}
