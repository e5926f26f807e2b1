// Links of a text. They lead to the web only, and say where.
import { type ComponentChildren, h } from "preact";

/** The text as it was written if the link leads anywhere but to the web. */
export function link(target: string, children: ComponentChildren[], raw: string): ComponentChildren {
  const url = webAddress(target);
  if (url === null) return raw;
  const where = h("span", { class: "link-target" }, ` ‹${url.host}›`);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, [
    ...children,
    where,
  ]);
}

function webAddress(target: string): URL | null {
  if (!URL.canParse(target)) return null;
  const url = new URL(target);
  return ["http:", "https:"].includes(url.protocol) ? url : null;
}

/** The closing bracket of every opening one. */
export function bracketsOf(text: string): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length > 0) pairs.set(open.pop()!, at);
  }
  return pairs;
}

/** An address in a sentence, without the punctuation behind it: (see https://example.org). */
export function withoutEnd(address: string): string {
  /** Closing brackets without an opening one. */
  let surplus = address.split(")").length - address.split("(").length;
  let end = address.length;
  for (; end > 0; end--) {
    const last = address[end - 1]!;
    if (!/[?!.,:;*_~'")\]]/.test(last) || (last === ")" && surplus <= 0)) break;
    if (last === ")") surplus -= 1;
  }
  return address.slice(0, end);
}
