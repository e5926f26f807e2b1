// Visits every node of a syntax tree, parents first.

import type { Expression, Statement } from "./syntax.ts";

export type SyntaxNode = Expression | Statement;

export function walk(tree: unknown, visit: (node: SyntaxNode) => void): void {
  if (typeof tree !== "object" || tree === null) return;
  if (isNode(tree)) visit(tree);
  for (const child of Object.values(tree)) walk(child, visit);
}

/** Whether a variable of this name is read anywhere in it. */
export function mentions(tree: unknown, name: string): boolean {
  let found = false;
  walk(tree, (node) => {
    found ||= node.type === "name" && node.name === name;
  });
  return found;
}

function isNode(value: object): value is SyntaxNode {
  return "type" in value;
}
