// Links of a text. They lead to the web only, and say where.
import { type ComponentChildren, h } from "preact";

/** The text as it was written if the link leads anywhere but to the web. */
export function link(target: string, children: ComponentChildren, raw: string): ComponentChildren {
  const url = webAddress(target);
  if (url === null) return raw;
  const where = h("span", { class: "link-target" }, ` ‹${url.host}›`);
  const to = { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href };
  return h("a", to, [children, where]);
}

export function webAddress(target: string): URL | null {
  if (!URL.canParse(target)) return null;
  const url = new URL(target);
  return ["http:", "https:"].includes(url.protocol) ? url : null;
}
