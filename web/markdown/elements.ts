// Tokens → elements. No HTML string exists at any time, so nothing in an answer can become code: HTML is shown as text and
// images become links.
import type { Token, Tokens } from "marked";
import { type ComponentChildren, h, type JSX } from "preact";
import { TableScroll } from "../parts/table-scroll.tsx";
import { Code } from "./code.tsx";
import { withCharacters } from "./entities.ts";
import { link } from "./links.ts";
import { Maths } from "./maths.tsx";
import type { Outline } from "./outline.ts";

/** Every block finds its own direction, and so does every item and cell. */
const AUTO = { dir: "auto" } as const;

/** `isOpen`: the text may still go on in this block. Null for what is not shown. */
export function blockOf(given: Token, isOpen: boolean, outline: Outline): JSX.Element | null {
  const token: Tokens.Generic = given;
  switch (token.type) {
    case "space":
      return null;
    case "heading":
      return h(`h${outline.level(token.depth)}`, AUTO, inline(token.tokens));
    case "hr":
      return h("hr", {});
    case "code":
      return token.lang === "math"
        ? h(Maths, { tex: token.text, isDisplay: true, raw: token.raw })
        : h(Code, { text: token.text, info: token.lang ?? "", isOpen });
    case "blockquote":
      return h("blockquote", AUTO, blocks(token.tokens, isOpen, outline));
    case "list": {
      const items = (token.items as Tokens.ListItem[]).map((item) =>
        h("li", AUTO, blocks(item.tokens, isOpen, outline)),
      );
      return token.ordered ? h("ol", { ...AUTO, start: token.start }, items) : h("ul", AUTO, items);
    }
    case "table":
      return tableOf(token);
    case "math":
      return h(Maths, { tex: token.text, isDisplay: token.isDisplay, raw: token.raw });
    case "footnote":
      return h("p", { ...AUTO, class: "footnote" }, [h("sup", {}, token.label), " ", inline(token.tokens)]);
    case "def": {
      const name = token.raw.slice(0, token.raw.indexOf("]:") + 2).trim();
      const title = token.title ? ` ${token.title}` : "";
      return h("p", { ...AUTO, class: "footnote" }, [`${name} `, link(token.href, token.href, token.href), title]);
    }
    default:
      return h("p", AUTO, token.tokens === undefined ? withCharacters(token.text ?? token.raw) : inline(token.tokens));
  }
}

/** Of a list item or a quote. The text of a tight list is no paragraph. */
function blocks(tokens: readonly Tokens.Generic[] = [], isOpen: boolean, outline: Outline): ComponentChildren[] {
  return tokens.map((token, i) => {
    if (token.type === "checkbox") return token.checked ? "☑ " : "☐ ";
    if (token.type === "text") return token.tokens === undefined ? withCharacters(token.text) : inline(token.tokens);
    return blockOf(token, isOpen && i === tokens.length - 1, outline);
  });
}

function inline(tokens: readonly Tokens.Generic[] = []): ComponentChildren[] {
  return tokens.map(inlineOf);
}

function inlineOf(token: Tokens.Generic): ComponentChildren {
  switch (token.type) {
    case "text":
      return token.tokens === undefined ? withCharacters(token.text) : inline(token.tokens);
    case "escape":
      return token.text;
    case "strong":
    case "em":
    case "del":
      return h(token.type, {}, inline(token.tokens));
    case "codespan":
      return h("code", {}, token.text);
    case "br":
      return h("br", {});
    case "link":
      return link(token.href, inline(token.tokens), token.raw);
    case "image":
      return link(token.href, `image: ${token.text}`, token.raw);
    case "math":
      return h(Maths, { tex: token.text, isDisplay: token.isDisplay, raw: token.raw });
    case "footnoteMark":
      return h("sup", {}, token.label);
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    default: // a tag; in a cell, where no line can end, models write this one
      return /^<br *\/?>$/i.test(token.raw) ? h("br", {}) : token.raw;
  }
}

function tableOf(token: Tokens.Generic): JSX.Element {
  const cells = (row: Tokens.TableCell[], tag: "th" | "td") =>
    row.map((cell) => h(tag, { ...AUTO, class: cell.align ? `align-${cell.align}` : undefined }, inline(cell.tokens)));
  const head = h("thead", {}, h("tr", {}, cells(token.header, "th")));
  const body = h(
    "tbody",
    {},
    (token.rows as Tokens.TableCell[][]).map((row) => h("tr", {}, cells(row, "td"))),
  );
  return h(TableScroll, { label: "Table", children: h("table", {}, [head, body]) });
}
