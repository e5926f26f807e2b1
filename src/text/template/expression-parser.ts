// Parses expressions with Jinja's precedence, loosest first: if-else, or, and, not, comparisons, + -, ~, * / // %, **, signs,
// then attributes, calls, filters and tests. A filter binds tighter than any operator: `a + b|trim` trims b.

import type { TokenStream } from "./lexer.ts";
import type { Arguments, BinaryOperator, Comparison, Expression, Filter } from "./syntax.ts";

const CONSTANTS: ReadonlyMap<string, null | boolean> = new Map([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);

export function parseExpression(stream: TokenStream): Expression {
  return stream.nested(() => {
    let value = parseOr(stream);
    while (stream.skipName("if")) {
      const condition = parseOr(stream);
      const otherwise = stream.skipName("else") ? parseExpression(stream) : null;
      value = { type: "conditional", condition, value, otherwise };
    }
    return value;
  });
}

/** One expression, or several with commas between them as a tuple. `withIf` false: an `if` belongs to the statement. */
export function parseTuple(stream: TokenStream, withIf = true): Expression {
  const parse = withIf ? parseExpression : parseOr;
  const first = parse(stream);
  if (!stream.isOperator(",")) return first;
  const items = [first];
  while (stream.skipOperator(",") && !isTupleEnd(stream)) items.push(parse(stream));
  return { type: "tuple", items };
}

function isTupleEnd(stream: TokenStream): boolean {
  return stream.current.type === "delimiter" || stream.isOperator(")") || stream.isName("recursive");
}

function parseOr(stream: TokenStream): Expression {
  let left = parseAnd(stream);
  while (stream.skipName("or")) left = { type: "or", left, right: parseAnd(stream) };
  return left;
}

function parseAnd(stream: TokenStream): Expression {
  let left = parseNot(stream);
  while (stream.skipName("and")) left = { type: "and", left, right: parseNot(stream) };
  return left;
}

function parseNot(stream: TokenStream): Expression {
  if (!stream.skipName("not")) return parseCompare(stream);
  return { type: "not", operand: stream.nested(() => parseNot(stream)) };
}

function parseCompare(stream: TokenStream): Expression {
  const first = parseSum(stream);
  const rest: { operator: Comparison; operand: Expression }[] = [];
  for (let operator = takeComparison(stream); operator; operator = takeComparison(stream)) {
    rest.push({ operator, operand: parseSum(stream) });
  }
  return rest.length === 0 ? first : { type: "compare", first, rest };
}

const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="] as const;

function takeComparison(stream: TokenStream): Comparison | null {
  if (stream.skipName("in")) return "in";
  if (stream.isName("not") && stream.isName("in", 1)) {
    stream.take();
    stream.take();
    return "not in";
  }
  return COMPARISONS.find((operator) => stream.skipOperator(operator)) ?? null;
}

const SUMS = ["+", "-"] as const;
const PRODUCTS = ["*", "/", "//", "%"] as const;
const POWERS = ["**"] as const;

const parseSum = binary(SUMS, parseConcat);
const parseProduct = binary(PRODUCTS, (stream) => parsePower(stream));
const parsePower = binary(POWERS, (stream) => parseUnary(stream, true));

/** Operators of one precedence, grouped from the left. */
function binary(operators: readonly BinaryOperator[], parseOperand: (stream: TokenStream) => Expression) {
  return (stream: TokenStream): Expression => {
    let left = parseOperand(stream);
    for (;;) {
      const operator = operators.find((candidate) => stream.skipOperator(candidate));
      if (!operator) return left;
      left = { type: "binary", operator, left, right: parseOperand(stream) };
    }
  };
}

function parseConcat(stream: TokenStream): Expression {
  const items = [parseProduct(stream)];
  while (stream.skipOperator("~")) items.push(parseProduct(stream));
  return items.length === 1 ? items[0]! : { type: "concat", items };
}

function parseUnary(stream: TokenStream, withFilter: boolean): Expression {
  const sign = stream.skipOperator("-") ? "minus" : stream.skipOperator("+") ? "plus" : null;
  const operand: Expression =
    sign === null ? parsePrimary(stream) : { type: sign, operand: stream.nested(() => parseUnary(stream, false)) };
  const value = parsePostfix(stream, operand);
  return withFilter ? parseFiltersAndTests(stream, value) : value;
}

function parsePrimary(stream: TokenStream): Expression {
  const { type, value } = stream.current;
  switch (type) {
    case "name": {
      stream.take();
      const constant = CONSTANTS.get(value);
      return constant === undefined ? { type: "name", name: value } : { type: "constant", value: constant };
    }
    case "string": {
      let text = "";
      while (stream.current.type === "string") text += stream.take().value;
      return { type: "constant", value: text };
    }
    case "integer":
      stream.take();
      return { type: "constant", value: BigInt(value.replaceAll("_", "")) };
    case "float":
      stream.take();
      return { type: "constant", value: Number(value.replaceAll("_", "")) };
  }
  if (stream.skipOperator("(")) {
    const inner: Expression = stream.isOperator(")") ? { type: "tuple", items: [] } : parseTuple(stream);
    stream.expect("operator", ")");
    return inner;
  }
  if (stream.skipOperator("[")) return { type: "list", items: parseItems(stream, "]", parseExpression) };
  if (stream.skipOperator("{")) return { type: "dict", pairs: parseItems(stream, "}", parsePair) };
  throw stream.unexpected("an expression");
}

function parseItems<T>(stream: TokenStream, end: string, parse: (stream: TokenStream) => T): T[] {
  const items: T[] = [];
  while (!stream.skipOperator(end)) {
    if (items.length > 0) stream.expect("operator", ",");
    if (stream.skipOperator(end)) break;
    items.push(parse(stream));
  }
  return items;
}

function parsePair(stream: TokenStream): [Expression, Expression] {
  const key = parseExpression(stream);
  stream.expect("operator", ":");
  return [key, parseExpression(stream)];
}

function parsePostfix(stream: TokenStream, start: Expression): Expression {
  let value = start;
  for (;;) {
    if (stream.skipOperator(".")) value = parseMember(stream, value);
    else if (stream.skipOperator("[")) value = parseSubscript(stream, value);
    else if (stream.isOperator("(")) value = { type: "call", callee: value, args: parseArguments(stream) };
    else return value;
  }
}

function parseMember(stream: TokenStream, object: Expression): Expression {
  if (stream.current.type !== "integer") return { type: "attribute", object, name: stream.name() };
  return { type: "subscript", object, index: { type: "constant", value: BigInt(stream.take().value) } };
}

function parseSubscript(stream: TokenStream, object: Expression): Expression {
  const bound = (): Expression | null =>
    stream.isOperator(":") || stream.isOperator("]") ? null : parseExpression(stream);
  const index = bound();
  if (!stream.skipOperator(":")) {
    if (index === null) throw stream.unexpected("an index");
    stream.expect("operator", "]");
    return { type: "subscript", object, index };
  }
  const stop = bound();
  const step = stream.skipOperator(":") ? bound() : null;
  stream.expect("operator", "]");
  return { type: "slice", object, bounds: [index, stop, step] };
}

export function parseArguments(stream: TokenStream): Arguments {
  const args: Arguments = { positional: [], named: [], spread: null, spreadNamed: null };
  stream.expect("operator", "(");
  while (!stream.skipOperator(")")) {
    if (stream.current.type === "name" && stream.isOperator("=", 1)) {
      const name = stream.name();
      stream.take();
      args.named.push([name, parseExpression(stream)]);
    } else if (stream.skipOperator("*")) args.spread = parseExpression(stream);
    else if (stream.skipOperator("**")) args.spreadNamed = parseExpression(stream);
    else if (args.named.length > 0 || args.spread || args.spreadNamed) {
      throw stream.error("an argument without a name follows one with a name");
    } else args.positional.push(parseExpression(stream));
    if (!stream.isOperator(")")) stream.expect("operator", ",");
  }
  return args;
}

function parseFiltersAndTests(stream: TokenStream, start: Expression): Expression {
  let value = start;
  for (;;) {
    if (stream.skipOperator("|")) value = { type: "filter", operand: value, ...parseFilter(stream) };
    else if (stream.skipName("is")) value = parseTest(stream, value);
    else if (stream.isOperator("(")) value = { type: "call", callee: value, args: parseArguments(stream) };
    else return value;
  }
}

/** The name of a filter and its arguments, after the bar. */
export function parseFilter(stream: TokenStream): Filter {
  const name = stream.name();
  return { name, args: stream.isOperator("(") ? parseArguments(stream) : noArguments() };
}

function parseTest(stream: TokenStream, operand: Expression): Expression {
  const isNegated = stream.skipName("not");
  const name = stream.name();
  const hasBrackets = stream.isOperator("(");
  const args = hasBrackets ? parseArguments(stream) : noArguments();
  // A single argument needs no brackets: `is divisibleby 3`.
  if (!hasBrackets && startsArgument(stream)) args.positional.push(parsePostfix(stream, parsePrimary(stream)));
  const test: Expression = { type: "test", operand, name, args };
  return isNegated ? { type: "not", operand: test } : test;
}

function startsArgument(stream: TokenStream): boolean {
  const { type, value } = stream.current;
  if (type === "name") {
    if (value === "is") throw stream.error("tests cannot be chained with 'is'");
    return !["else", "or", "and", "if", "in", "not", "recursive"].includes(value);
  }
  return ["string", "integer", "float"].includes(type) || stream.isOperator("[") || stream.isOperator("{");
}

function noArguments(): Arguments {
  return { positional: [], named: [], spread: null, spreadNamed: null };
}
