// Names of expressions in error messages.

import type { Expression } from "./syntax.ts";

/** For instance `'message.content'`. */
export function describe(node: Expression): string {
  switch (node.type) {
    case "name":
      return `'${node.name}'`;
    case "attribute":
      return `${describe(node.object).slice(0, -1)}.${node.name}'`;
    case "subscript":
    case "slice":
      return `${describe(node.object).slice(0, -1)}[...]'`;
    case "call":
      return `${describe(node.callee).slice(0, -1)}(...)'`;
    default:
      return "'an expression'";
  }
}
