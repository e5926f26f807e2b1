// Copies a text and says so.
import { useSignal } from "@preact/signals";

const SHOWN_MS = 1500;

export function CopyButton({ text, what, label }: { text: string; what: string; label?: string }) {
  const state = useSignal("");
  const copy = async () => {
    try {
      // There is no clipboard where the page came over plain HTTP from another machine.
      await navigator.clipboard.writeText(text);
      state.value = "copied";
    } catch {
      state.value = "not allowed";
    }
    setTimeout(() => {
      state.value = "";
    }, SHOWN_MS);
  };
  return (
    <button
      type="button"
      class="small quiet"
      aria-label={label === undefined && state.value === "" ? `Copy ${what}` : undefined}
      onClick={copy}
    >
      {state.value === "" ? (label ?? "copy") : <span role="status">{state.value}</span>}
    </button>
  );
}
