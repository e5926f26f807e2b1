// Mathematics of an answer. Until the part that reads it is loaded, and where it is not TeX, it stays as it was written.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { useOverflow } from "../parts/use-overflow.ts";

const reader = signal<typeof import("./mathml.ts") | null>(null);
let isLoading = false;

function load(): void {
  if (isLoading) return;
  isLoading = true;
  void import("./mathml.ts").then(
    (found) => {
      reader.value = found;
    },
    () => {}, // the server is gone, or has another version of the page: TeX can be read too
  );
}

/** `raw`: with its dollars. */
export function Maths({ tex, isDisplay, raw }: { tex: string; isDisplay: boolean; raw: string }) {
  useEffect(load, []);
  const { box, isWider } = useOverflow<HTMLSpanElement>();
  const made = useMemo(() => reader.value?.mathOf(tex, isDisplay) ?? null, [tex, isDisplay, reader.value]);
  const shown = made ?? <code class="tex">{raw.trim()}</code>;
  if (!isDisplay) return shown;
  return (
    <span ref={box} class="display-math" tabIndex={isWider ? 0 : undefined}>
      {shown}
    </span>
  );
}
