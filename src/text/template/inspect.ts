// What a template uses, read off its syntax tree: the variables it mentions, and whether it walks through the parts of
// a message's content (then it gets a list of parts) or prints content as it is (then it gets one string).

import { type AstNode, isNode, memberName, walk } from "./ast.ts";

export type ContentFormat = "string" | "parts";

export interface TemplateFacts {
  contentFormat: ContentFormat;
  /** Every name the template mentions, its own variables included. */
  names: ReadonlySet<string>;
}

export function inspectTemplate(program: AstNode): TemplateFacts {
  const names = new Set<string>();
  const loops: AstNode[] = [];
  const assignments: AstNode[] = [];
  walk(program, (node) => {
    if (node.type === "Identifier") names.add(node.value as string);
    if (node.type === "For") loops.push(node);
    if (node.type === "Set") assignments.push(node);
  });
  return { contentFormat: walksContent(loops, assignments) ? "parts" : "string", names };
}

function walksContent(loops: readonly AstNode[], assignments: readonly AstNode[]): boolean {
  const lists = new Set(["messages"]);
  const messages = new Set<string>();

  const isNamed = (node: unknown, names: ReadonlySet<string>): boolean =>
    isNode(node) && node.type === "Identifier" && names.has(node.value as string);
  const isElement = (node: AstNode): boolean =>
    node.type === "MemberExpression" && node.computed === true && isNamed(node.object, lists) && !isSlice(node);
  const isMessage = (node: unknown): boolean => isNamed(node, messages) || (isNode(node) && isElement(node));
  // Only `message.content` itself counts: templates keep contents under other names for other purposes.
  const isContent = (node: unknown): boolean =>
    isNode(node) && memberName(node) === "content" && isMessage(node.object);

  // Names may be used before the walk reaches their definition, so go on until nothing new is learned.
  for (let known = -1; known !== lists.size + messages.size; ) {
    known = lists.size + messages.size;
    for (const { assignee, value } of assignments) {
      const source = bare(value);
      if (!isNode(assignee) || assignee.type !== "Identifier") continue;
      const name = assignee.value as string;
      if (isNamed(source, lists)) lists.add(name);
      else if (isMessage(source)) messages.add(name);
    }
    for (const { loopvar, iterable } of loops) {
      if (isNode(loopvar) && loopvar.type === "Identifier" && isNamed(bare(iterable), lists)) {
        messages.add(loopvar.value as string);
      }
    }
  }
  return loops.some(({ iterable }) => isContent(bare(iterable)));
}

/** The expression without filters, slices and "if" conditions around it. */
function bare(node: unknown): unknown {
  let inner = node;
  while (isNode(inner)) {
    if (inner.type === "FilterExpression") inner = inner.operand;
    else if (inner.type === "SelectExpression") inner = inner.lhs;
    else if (inner.type === "MemberExpression" && isSlice(inner)) inner = inner.object;
    else break;
  }
  return inner;
}

function isSlice(node: AstNode): boolean {
  return isNode(node.property) && node.property.type === "SliceExpression";
}
