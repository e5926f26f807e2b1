// A panel below the answers. It comes into view when it is opened.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Panel({ title, name, children }: { title: string; name: string; children: ComponentChildren }) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section ref={section} class={`panel ${name}`} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
