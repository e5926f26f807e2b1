// Wordings with built-in paraphrases: "{Say|Write} hello[ please] to $name" stands for many sentences. {a|b} picks one, [x]
// appears half of the time, $name is filled in, and @name is one line of the section "@name" in asks.txt. All of them nest.
// "\" escapes the next character. Templates are parsed once.

import { asksOf } from "./bank.ts";
import type { Rng } from "./rng.ts";

type Node = string | { variable: string } | { section: string } | { options: Node[][] };

const parsed = new Map<string, Node[]>();

/** One random reading of the template. Unknown variables and unbalanced brackets throw: they are our own typos. */
export function say(rng: Rng, template: string, values: Readonly<Record<string, string | number>> = {}): string {
  let nodes = parsed.get(template);
  if (nodes === undefined) {
    nodes = parse(template);
    parsed.set(template, nodes);
  }
  return write(rng, nodes, values, template);
}

function write(
  rng: Rng,
  nodes: readonly Node[],
  values: Readonly<Record<string, string | number>>,
  template: string,
): string {
  let out = "";
  for (const node of nodes) {
    if (typeof node === "string") out += node;
    else if ("variable" in node) {
      const value = values[node.variable];
      if (value === undefined) throw new Error(`wording "${template}" needs a value for $${node.variable}`);
      out += value;
    } else if ("section" in node) {
      out += say(rng, rng.pick(asksOf(node.section)), values);
    } else out += write(rng, rng.pick(node.options), values, template);
  }
  return out;
}

function parse(template: string): Node[] {
  let at = 0;
  const sequence = (closer: string): Node[][] => {
    const options: Node[][] = [[]];
    let text = "";
    const here = () => options[options.length - 1] as Node[];
    const flush = () => {
      if (text !== "") here().push(text);
      text = "";
    };
    for (;;) {
      const char = template[at];
      if (char === undefined) {
        if (closer !== "") throw new Error(`wording "${template}" lacks a "${closer}"`);
        flush();
        return options;
      }
      at++;
      if (char === "\\") text += template[at++] ?? "";
      else if (char === closer) {
        flush();
        return options;
      } else if (char === "{") {
        flush();
        here().push({ options: sequence("}") });
      } else if (char === "[") {
        flush();
        const inner = sequence("]");
        here().push({ options: [[], [{ options: inner }]] });
      } else if (char === "|" && closer !== "") {
        flush();
        options.push([]);
      } else if (char === "$" && /[a-z]/.test(template[at] ?? "")) {
        flush();
        const name = /^[a-z]+/.exec(template.slice(at))?.[0] as string;
        at += name.length;
        here().push({ variable: name });
      } else if (char === "@" && /[a-z]/.test(template[at] ?? "") && !/[a-z]/i.test(template[at - 2] ?? "")) {
        flush();
        const name = /^[a-z]+/.exec(template.slice(at))?.[0] as string;
        at += name.length;
        here().push({ section: `@${name}` });
      } else if (char === "}" || char === "]") {
        throw new Error(`wording "${template}" has a stray "${char}"`);
      } else text += char;
    }
  };
  return sequence("")[0] as Node[];
}

/**
 * How people really type: sometimes words before or after the request, no capitals, no full stop, "json". With `tail` false,
 * nothing is added after the text, because the task is about its end.
 */
export function asTyped(rng: Rng, text: string, tail = true): string {
  let out = anyCaseJson(rng, text);
  if (rng.chance(0.08)) out = out.charAt(0).toLowerCase() + out.slice(1);
  if (rng.chance(0.05) && /[.?!]$/.test(out)) out = out.slice(0, -1);
  if (rng.chance(0.12)) out = `${say(rng, rng.pick(asksOf("frame-before")))} ${out}`;
  if (tail && rng.chance(0.1))
    out = `${out}${/[.?!:]$/.test(out) ? "" : "."} ${say(rng, rng.pick(asksOf("frame-after")))}`;
  return out;
}

/** Writes "JSON" in lower case a third of the time. */
function anyCaseJson(rng: Rng, text: string): string {
  if (!/\bJSON\b/.test(text) || !rng.chance(0.34)) return text;
  return text.replace(/\bJSON\b/g, rng.chance(0.8) ? "json" : "Json");
}
