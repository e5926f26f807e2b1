// A table that may be wider than its place. The keyboard reaches it, so that it can be scrolled without a pointer.
import type { ComponentChildren } from "preact";

export function TableScroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus
    <section class="table-scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
