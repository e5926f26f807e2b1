// The syntax tree of a template. The parser makes it, the evaluator runs it, inspect.ts reads it.

export type Expression =
  | { type: "constant"; value: null | boolean | bigint | number | string }
  | { type: "name"; name: string }
  | { type: "list" | "tuple" | "concat"; items: Expression[] }
  | { type: "dict"; pairs: [key: Expression, value: Expression][] }
  | { type: "attribute"; object: Expression; name: string }
  | { type: "subscript"; object: Expression; index: Expression }
  | {
      type: "slice";
      object: Expression;
      bounds: [start: Expression | null, stop: Expression | null, step: Expression | null];
    }
  | { type: "call"; callee: Expression; args: Arguments }
  | { type: "filter" | "test"; operand: Expression; name: string; args: Arguments }
  | { type: "not" | "minus" | "plus"; operand: Expression }
  | { type: "binary"; operator: BinaryOperator; left: Expression; right: Expression }
  | { type: "and" | "or"; left: Expression; right: Expression }
  | { type: "compare"; first: Expression; rest: { operator: Comparison; operand: Expression }[] }
  | { type: "conditional"; condition: Expression; value: Expression; otherwise: Expression | null };

export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";
export type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

export interface Arguments {
  positional: Expression[];
  named: [name: string, value: Expression][];
  /** `*list` */
  spread: Expression | null;
  /** `**dict` */
  spreadNamed: Expression | null;
}

export type Target =
  | { type: "name"; name: string }
  | { type: "member"; object: string; name: string }
  | { type: "targets"; items: Target[] };

export interface Parameter {
  name: string;
  fallback: Expression | null;
}

/** What a macro and the body of a `call` block have in common. */
export interface MacroBody {
  name: string;
  parameters: Parameter[];
  body: Statement[];
  /** Whether the body mentions `varargs`, `kwargs` or `caller` and so accepts arguments that no parameter names. */
  takesMore: boolean;
  takesMoreNamed: boolean;
  takesCaller: boolean;
}

export interface ForStatement {
  type: "for";
  line: number;
  target: Target;
  iterable: Expression;
  condition: Expression | null;
  isRecursive: boolean;
  body: Statement[];
  otherwise: Statement[];
}

export type Statement =
  | { type: "text"; line: number; text: string }
  | { type: "output"; line: number; value: Expression }
  | { type: "if"; line: number; condition: Expression; body: Statement[]; otherwise: Statement[] }
  | ForStatement
  | { type: "set"; line: number; target: Target; value: Expression }
  | { type: "set block"; line: number; target: Target; body: Statement[]; filters: Filter[] }
  | { type: "filter block"; line: number; body: Statement[]; filters: Filter[] }
  | { type: "with"; line: number; bindings: [target: Target, value: Expression][]; body: Statement[] }
  | { type: "macro"; line: number; macro: MacroBody }
  | { type: "call block"; line: number; call: Expression; caller: MacroBody }
  | { type: "break" | "continue"; line: number };

export interface Filter {
  name: string;
  args: Arguments;
}

// Visits every node of a syntax tree, parents first.

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

// Names of expressions in error messages.

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
