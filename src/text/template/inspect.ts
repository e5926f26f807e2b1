// Reads from a template's syntax tree which variables it mentions, and whether it loops over the parts of a message's
// content (then it gets a list of parts) or prints content as it is (then it gets one string).

import type { Expression, Statement } from "./syntax.ts";
import { walk } from "./walk.ts";

/** vLLM's names: one string, or a list of parts as in OpenAI's API. */
export type ContentFormat = "string" | "openai";
export type ContentFormatOption = "auto" | ContentFormat;

export interface TemplateFacts {
  contentFormat: ContentFormat;
  /** Every name the template mentions, its own variables included. */
  names: ReadonlySet<string>;
}

type Of<Type> = Extract<Statement, { type: Type }>;

export function inspectTemplate(template: readonly Statement[]): TemplateFacts {
  const names = new Set<string>();
  const loops: Of<"for">[] = [];
  const assignments: Of<"set">[] = [];
  walk(template, (node) => {
    if (node.type === "name") names.add(node.name);
    if (node.type === "for") loops.push(node);
    if (node.type === "set") assignments.push(node);
  });
  return { contentFormat: walksContent(loops, assignments) ? "openai" : "string", names };
}

function walksContent(loops: readonly Of<"for">[], assignments: readonly Of<"set">[]): boolean {
  const lists = new Set(["messages"]);
  const messages = new Set<string>();

  const isNamed = (node: Expression, names: ReadonlySet<string>): boolean =>
    node.type === "name" && names.has(node.name);
  const isMessage = (node: Expression): boolean =>
    isNamed(node, messages) || (node.type === "subscript" && isNamed(node.object, lists));
  // As in vLLM, only `message.content` itself counts, or a variable of that name: templates keep contents under other names
  // for other purposes.
  const isContent = (node: Expression): boolean => {
    if (node.type === "name") return node.name === "content";
    if (node.type === "attribute") return node.name === "content" && isMessage(node.object);
    return node.type === "subscript" && isText(node.index, "content") && isMessage(node.object);
  };

  // Names may be used before the walk reaches their definition, so go on until nothing new is learned.
  for (let known = -1; known !== lists.size + messages.size; ) {
    known = lists.size + messages.size;
    for (const { target, value } of assignments) {
      const source = bare(value);
      if (target.type !== "name") continue;
      if (isNamed(source, lists)) lists.add(target.name);
      else if (isMessage(source)) messages.add(target.name);
    }
    for (const { target, iterable } of loops) {
      if (target.type === "name" && isNamed(bare(iterable), lists)) messages.add(target.name);
    }
  }
  return loops.some(({ iterable }) => isContent(bare(iterable)));
}

/** The expression without filters and slices around it. */
function bare(node: Expression): Expression {
  if (node.type === "filter") return bare(node.operand);
  return node.type === "slice" ? bare(node.object) : node;
}

function isText(node: Expression, value: string): boolean {
  return node.type === "constant" && node.value === value;
}
