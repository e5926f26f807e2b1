// Reads from a template's syntax tree what it expects: which variables it mentions, whether it loops over the parts of a
// message's content (then it gets a list of parts) or prints content as it is (then it gets one string), and whether it tells
// null content from empty content.

import { type Expression, type Statement, walk } from "./syntax.ts";

/** vLLM's names: one string, or a list of parts as in OpenAI's API. */
export type ContentFormat = "string" | "openai";
export type ContentFormatOption = "auto" | ContentFormat;

export interface TemplateFacts {
  contentFormat: ContentFormat;
  /** It tells assistant messages with null content from others. */
  knowsNullContent: boolean;
  /** Every name the template mentions, its own variables included. */
  names: ReadonlySet<string>;
}

type Of<Type> = Extract<Statement, { type: Type }>;

export function inspectTemplate(template: readonly Statement[]): TemplateFacts {
  const names = new Set<string>();
  const loops: Of<"for">[] = [];
  const assignments: Of<"set">[] = [];
  let knowsNullContent = false;
  walk(template, (node) => {
    if (node.type === "name") names.add(node.name);
    if (node.type === "for") loops.push(node);
    if (node.type === "set") assignments.push(node);
    if (node.type === "if") knowsNullContent ||= tellsNullContent(node.condition);
  });
  return { contentFormat: walksContent(loops, assignments) ? "openai" : "string", knowsNullContent, names };
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
  const isContent = (node: Expression): boolean =>
    (node.type === "name" && node.name === "content") || (isMember(node, "content") && isMessage(node.object));

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

/** `message.role == "assistant" and message.content is none`, or `is not none`, perhaps with more conditions. */
function tellsNullContent(condition: Expression): boolean {
  const parts = conjuncts(condition);
  const asksRole = parts.some(
    (part) => part.type === "compare" && isMember(part.first, "role") && isText(part.rest[0]!.operand, "assistant"),
  );
  const asksContent = parts.some((part) => {
    const test = part.type === "not" ? part.operand : part;
    return test.type === "test" && test.name === "none" && isMember(test.operand, "content");
  });
  return asksRole && asksContent;
}

function conjuncts(node: Expression, found: Expression[] = []): Expression[] {
  if (node.type !== "and") found.push(node);
  else conjuncts(node.right, conjuncts(node.left, found));
  return found;
}

/** `object.name` or `object["name"]`. */
function isMember(node: Expression, name: string): node is Extract<Expression, { type: "attribute" | "subscript" }> {
  if (node.type === "attribute") return node.name === name;
  return node.type === "subscript" && isText(node.index, name);
}

/** The expression without filters and slices around it. */
function bare(node: Expression): Expression {
  if (node.type === "filter") return bare(node.operand);
  return node.type === "slice" ? bare(node.object) : node;
}

function isText(node: Expression, value: string): boolean {
  return node.type === "constant" && node.value === value;
}
