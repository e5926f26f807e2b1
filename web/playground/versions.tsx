// ‹2/3›: which version is shown, and the way to the others. Who goes through them by keyboard keeps the focus: a button at the end of
// its way is not disabled, and the same button of the version that is shown now gets it.
import { useEffect, useRef } from "preact/hooks";

/** The button that was pressed. What it belongs to may be drawn anew. */
let pressed: { of: string; by: -1 | 1 } | null = null;

export interface VersionsProps {
  of: string;
  /** Counts from 0. */
  at: number;
  count: number;
  onShow: (version: number) => void;
}

export function Versions({ of, at, count, onShow }: VersionsProps) {
  const before = useRef<HTMLButtonElement>(null);
  const next = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (pressed?.of !== of) return;
    (pressed.by < 0 ? before : next).current?.focus();
    pressed = null;
  }, [at]);
  if (count < 2) return null;
  const show = (by: -1 | 1) => {
    if (at + by < 0 || at + by >= count) return;
    pressed = { of, by };
    onShow(at + by);
  };
  return (
    <span class="versions num">
      <button
        ref={before}
        type="button"
        class="small quiet"
        aria-label={`Version before of ${of}`}
        aria-disabled={at <= 0}
        onClick={() => show(-1)}
      >
        ‹
      </button>
      <span>
        <span class="sr-only">version </span>
        {at + 1}/{count}
      </span>
      <button
        ref={next}
        type="button"
        class="small quiet"
        aria-label={`Next version of ${of}`}
        aria-disabled={at >= count - 1}
        onClick={() => show(1)}
      >
        ›
      </button>
    </span>
  );
}
