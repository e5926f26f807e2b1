// Markdown as elements. marked's lexer reads it; no HTML string exists at any time, so nothing in a reply can become code.
// HTML in a reply is shown as text, images become links, and links lead to http and https only and say where.

import { Lexer, type Token, type Tokens } from "marked";
import { type ComponentChildren, h, type JSX } from "preact";
import { TableScroll } from "./table-scroll.tsx";

/** Longer texts are shown as they are: nobody reads their formatting, and lexing would take long. */
const LONGEST = 60_000;

export function Markdown({ text }: { text: string }): JSX.Element {
  const tokens = text.length > LONGEST ? null : lex(text);
  if (tokens === null) return h("div", { class: "markdown plain-text" }, text);
  return h("div", { class: "markdown" }, blocks(tokens));
}

function lex(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return null; // nested too deeply: shown as it is
  }
}

function blocks(tokens: readonly Token[]): ComponentChildren[] {
  return tokens.map((token) => block(token as Tokens.Generic));
}

function block(token: Tokens.Generic): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page has its own h1 and h2.
      return h(`h${Math.min(6, token.depth + 2)}`, {}, inline(token.tokens));
    case "paragraph":
      return h("p", {}, inline(token.tokens));
    case "code":
      return h("pre", {}, h("code", {}, token.text));
    case "blockquote":
      return h("blockquote", {}, blocks(token.tokens ?? []));
    case "hr":
      return h("hr", {});
    case "list":
      return list(token as Tokens.List);
    case "table":
      return table(token as Tokens.Table);
    case "text":
      return token.tokens === undefined ? plain(token.text) : inline(token.tokens);
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    default:
      return token.raw; // HTML, and whatever this file does not know
  }
}

function list(token: Tokens.List): JSX.Element {
  const items = token.items.map((item) => h("li", {}, blocks(item.tokens)));
  return token.ordered ? h("ol", { start: Number(token.start) || 1 }, items) : h("ul", {}, items);
}

function table(token: Tokens.Table): JSX.Element {
  const cells = (row: Tokens.TableCell[], tag: "th" | "td") => row.map((cell) => h(tag, {}, inline(cell.tokens)));
  const head = h("thead", {}, h("tr", {}, cells(token.header, "th")));
  const body = h(
    "tbody",
    {},
    token.rows.map((row) => h("tr", {}, cells(row, "td"))),
  );
  return h(TableScroll, { label: "Table", children: h("table", {}, [head, body]) });
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren[] {
  return (tokens ?? []).map((token) => span(token as Tokens.Generic));
}

function span(token: Tokens.Generic): ComponentChildren {
  switch (token.type) {
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
      return link(token.href, [`image: ${token.text}`], token.raw);
    case "text":
      return token.tokens === undefined ? plain(token.text) : inline(token.tokens);
    case "escape":
      return token.text;
    default:
      return token.raw;
  }
}

/** A link that says where it leads; text if it leads anywhere but to the web. */
function link(target: string, children: ComponentChildren[], raw: string): ComponentChildren {
  const url = webAddress(target);
  if (url === null) return raw;
  const where = h("span", { class: "link-target" }, ` ‹${url.host}›`);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, [
    ...children,
    where,
  ]);
}

export function webAddress(target: string): URL | null {
  if (!URL.canParse(target)) return null;
  const url = new URL(target);
  return ["http:", "https:"].includes(url.protocol) ? url : null;
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** The lexer leaves entities for a browser to read. */
function plain(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_all, name: string) => ENTITIES[name]!);
}
