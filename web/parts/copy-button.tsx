// Copies a text and says so.
import { useSignal } from "@preact/signals";

const SHOWN_MS = 1500;

export function CopyButton({ text, what, label }: { text: string; what: string; label?: string }) {
  const state = useSignal("");
  const copy = async () => {
    state.value = await navigator.clipboard.writeText(text).then(
      () => "copied",
      () => "not allowed",
    );
    setTimeout(() => {
      state.value = "";
    }, SHOWN_MS);
  };
  return (
    <button
      type="button"
      class="small quiet"
      aria-label={label === undefined ? `Copy ${what}` : undefined}
      onClick={copy}
    >
      {state.value === "" ? (label ?? "copy") : <span role="status">{state.value}</span>}
    </button>
  );
}
