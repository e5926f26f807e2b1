// The syntax tree of @huggingface/jinja as plain data, and nodes of ours: "Output" prints an expression as Python would,
// "Block" is a list of statements used as a value, "Literal" a finished value.

export interface AstNode {
  type: string;
  [field: string]: unknown;
}

/** Fields that hold lists of statements (as against lists of expressions). */
const STATEMENT_LISTS = ["body", "alternate", "defaultBlock"] as const;

const STATEMENTS = new Set([
  "Set",
  "If",
  "For",
  "Macro",
  "CallStatement",
  "Break",
  "Continue",
  "Comment",
  "StringLiteral",
]);

export function isNode(value: unknown): value is AstNode {
  return typeof value === "object" && value !== null && typeof (value as AstNode).type === "string";
}

/** Visits every node, parents first. */
export function walk(node: unknown, visit: (node: AstNode) => void): void {
  if (Array.isArray(node)) {
    for (const item of node) walk(item, visit);
  } else if (node instanceof Map) {
    for (const [key, value] of node) {
      walk(key, visit);
      walk(value, visit);
    }
  } else if (isNode(node)) {
    visit(node);
    for (const child of Object.values(node)) walk(child, visit);
  }
}

/** Puts our nodes in: printed expressions and filter blocks (a filter over a Block). */
export function prepare(program: AstNode): void {
  // The library looks for names inside macros with instanceof: our nodes must be statements to it.
  const statement: object = Object.getPrototypeOf(Object.getPrototypeOf(program));
  const create = (fields: AstNode): AstNode => Object.assign(Object.create(statement), fields);
  const mark = (node: AstNode): AstNode => {
    if (STATEMENTS.has(node.type)) return node;
    if (node.type !== "FilterStatement") return create({ type: "Output", expression: node });
    const operand = create({ type: "Block", body: node.body });
    return create({
      type: "Output",
      expression: create({ type: "FilterExpression", operand, filter: node.filter }),
    });
  };
  walk(program, (node) => {
    for (const field of STATEMENT_LISTS) {
      const list = node[field];
      if (Array.isArray(list)) node[field] = list.map(mark);
    }
  });
}

/** `object.name` or `object["name"]`: the name; null for anything else. */
export function memberName(node: AstNode): string | null {
  if (node.type !== "MemberExpression" || !isNode(node.property)) return null;
  const { property } = node;
  if (node.computed) return property.type === "StringLiteral" ? (property.value as string) : null;
  return property.type === "Identifier" ? (property.value as string) : null;
}
