// Runs a template with limits on work and size, and with Python's meaning where the template library's differs:
// printing, operators, filters, tests, methods, loops, the scope of macros, missing attributes. Everything else is the
// library's. A template cannot reach anything but the values it is given.

import { type AstNode, isNode, memberName } from "./ast.ts";
import { valueFilter } from "./filters.ts";
import { passesTest } from "./is-tests.ts";
import { LibraryEnvironment, LibraryInterpreter, type TemplateEnvironment, type TemplateValue } from "./library.ts";
import { filterElements, listFilter } from "./list-filters.ts";
import { type LoopHost, LoopSignal, runLoop } from "./loops.ts";
import { methodOf } from "./methods.ts";
import { applyOperator } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import { checkLength } from "./text-functions.ts";
import {
  booleanOf,
  type CallArguments,
  FunctionValue,
  keyOf,
  type LibraryFunction,
  nothing,
  objectOf,
  type TemplateEntries,
  textOf,
} from "./values.ts";

export interface RenderLimits {
  /** Nodes evaluated. */
  maxSteps: number;
  /** Characters of any one text, the result included. */
  maxText: number;
  /** Elements of any one list. */
  maxItems: number;
  /** Characters put together by all blocks. */
  maxTotalText: number;
}

/** Nested evaluations; templates in use stay below a hundred. */
const MAX_DEPTH = 800;

export class ChatInterpreter extends LibraryInterpreter {
  readonly #limits: RenderLimits;
  #steps = 0;
  #depth = 0;
  #totalText = 0;

  constructor(environment: TemplateEnvironment, limits: RenderLimits) {
    super(environment);
    this.#limits = limits;
  }

  override evaluate(node: AstNode | undefined, environment: TemplateEnvironment): TemplateValue {
    this.#step();
    // The library takes an overflowing stack for an undefined variable, so it must not come to that.
    if (++this.#depth > MAX_DEPTH) throw new Error("it is nested too deeply");
    try {
      const value = node === undefined ? super.evaluate(node, environment) : this.#evaluate(node, environment);
      if (typeof value.value === "string") checkLength(value.value.length, this.#limits.maxText);
      else if (Array.isArray(value.value) && value.value.length > this.#limits.maxItems) {
        throw new Error(`a list grew beyond ${this.#limits.maxItems} elements`);
      }
      return value;
    } finally {
      this.#depth--;
    }
  }

  #evaluate(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    switch (node.type) {
      case "Output":
        return this.#counted(pythonStr(this.#run(node.expression, environment)));
      case "Block":
        return this.#counted(this.#block(node.body as AstNode[], environment));
      case "If": {
        const holds = this.#run(node.test, environment).__bool__().value;
        return this.#counted(this.#block((holds ? node.body : node.alternate) as AstNode[], environment));
      }
      case "For":
        return this.#counted(runLoop(node, environment, this.#loopHost));
      case "Break":
        throw new LoopSignal("break");
      case "Continue":
        throw new LoopSignal("continue");
      case "Macro":
        return this.#macro(node, environment);
      case "CallStatement":
        return this.#counted(pythonStr(super.evaluate(node, environment)));
      case "Literal":
        return node.value as TemplateValue;
      case "ObjectLiteral":
        return this.#object(node.value as Map<AstNode, AstNode>, environment);
      case "UnaryExpression":
        if ((node.operator as AstNode).value !== "not") break;
        return booleanOf(!this.#run(node.argument, environment).__bool__().value);
      case "BinaryExpression":
        return this.#binary(node, environment);
      case "TestExpression":
        return this.#test(node, environment);
      case "MemberExpression": {
        const object = this.#run(node.object, environment);
        if (object.type === "UndefinedValue") throw new Error(`${nameOf(node.object as AstNode)} is undefined`);
        return this.#member(node, object, environment);
      }
      case "FilterExpression":
        return this.#filter(node, environment);
      case "CallExpression":
        return this.#call(node, environment);
    }
    return super.evaluate(node, environment);
  }

  readonly #loopHost: LoopHost = {
    value: (node, environment) => this.evaluate(node, environment),
    block: (statements, environment) => this.#block(statements, environment),
    step: () => this.#step(),
  };

  #block(statements: readonly AstNode[], environment: TemplateEnvironment): string {
    let text = "";
    try {
      for (const statement of statements) {
        const part = this.#run(statement, environment);
        if (part.type === "StringValue") text += part.value as string;
      }
    } catch (signal) {
      if (signal instanceof LoopSignal) signal.text = text + signal.text;
      throw signal;
    }
    return text;
  }

  #object(pairs: ReadonlyMap<AstNode, AstNode>, environment: TemplateEnvironment): TemplateValue {
    const entries: TemplateEntries = new Map();
    for (const [keyNode, valueNode] of pairs) {
      const key = this.#run(keyNode, environment);
      entries.set(keyOf(key) ?? pythonStr(key), this.#run(valueNode, environment));
    }
    return objectOf(entries);
  }

  /** A macro sees the variables of the place where it stands, not those of its callers (the library's way). */
  #macro(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    const result = super.evaluate(node, environment);
    const { value } = node.name as AstNode;
    const run = environment.lookupVariable(value as string).value as LibraryFunction;
    const bound = new FunctionValue((args, from) => {
      const scope = new LibraryEnvironment(environment);
      // Where a call statement calls, it has put what it encloses into a scope of its own.
      const caller = from.variables.get("caller");
      if (caller) scope.setVariable("caller", caller);
      return run(args, scope);
    });
    environment.setVariable(value as string, bound);
    return result;
  }

  #binary(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    const operator = (node.operator as AstNode).value as string;
    if (operator === "and" || operator === "or") return super.evaluate(node, environment);
    let left = this.#run(node.left, environment);
    if (isOrdering(node) && isOrdering(node.left)) {
      // `a < b < c`, which the parser reads from the left.
      if (left.value === false) return left;
      left = this.#run((node.left as AstNode).right, environment);
    }
    const right = this.#run(node.right, environment);
    const value = applyOperator(operator, left, right, this.#limits);
    if (value !== null) return value;
    return super.evaluate({ ...node, left: literal(left), right: literal(right) }, environment);
  }

  #test(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    const name = (node.test as AstNode).value as string;
    return booleanOf(passesTest(name, this.#run(node.operand, environment)) !== node.negate);
  }

  #filter(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    const filter = node.filter as AstNode;
    const isCall = filter.type === "CallExpression";
    const name = (isCall ? (filter.callee as AstNode).value : filter.value) as string;
    const operand = this.#run(node.operand, environment);
    const args = isCall ? this.#arguments(filter.args as AstNode[], environment) : noArguments;
    return this.#applyFilter(name, operand, args);
  }

  #applyFilter(name: string, operand: TemplateValue, args: CallArguments): TemplateValue {
    this.#step();
    const { maxText } = this.#limits;
    if (name === "reverse" && operand.type === "StringValue") {
      return textOf(
        Array.from(operand.value as string)
          .reverse()
          .join(""),
      );
    }
    const overList = listFilter(name);
    if (overList) {
      const apply = (inner: string, item: TemplateValue, innerArgs: CallArguments): TemplateValue =>
        this.#applyFilter(inner, item, innerArgs);
      return overList(filterElements(name, operand), args, { maxText, apply });
    }
    const overValue = valueFilter(name);
    if (overValue) return overValue(operand, args, maxText);
    throw new Error(`unknown filter '${name}'`);
  }

  /** Elements of texts by character, integer keys of objects; everything else is the library's. */
  #member(node: AstNode, object: TemplateValue, environment: TemplateEnvironment): TemplateValue {
    if (!node.computed || (node.property as AstNode).type === "SliceExpression") {
      return super.evaluate({ ...node, object: literal(object) }, environment);
    }
    const property = this.#run(node.property, environment);
    if (property.type === "IntegerValue") {
      const at = property.value as number;
      if (object.type === "StringValue") return characterAt(object.value as string, at);
      if (object.value instanceof Map) return object.value.get(at) ?? nothing;
    } else if (property.type !== "StringValue") return nothing;
    return super.evaluate({ ...node, object: literal(object), property: literal(property) }, environment);
  }

  /** Methods of texts, lists and objects are ours; every other call is the library's. */
  #call(node: AstNode, environment: TemplateEnvironment): TemplateValue {
    const callee = node.callee as AstNode;
    const name = callee.type === "MemberExpression" && !callee.computed ? (callee.property as AstNode).value : null;
    if (typeof name !== "string") return super.evaluate(node, environment);
    const target = this.#run(callee.object, environment);
    if (target.type === "UndefinedValue") throw new Error(`${nameOf(callee.object as AstNode)} is undefined`);
    const method = methodOf(target, name, this.#limits.maxText);
    if (method) return method(this.#arguments(node.args as AstNode[], environment));
    return super.evaluate({ ...node, callee: { ...callee, object: literal(target) } }, environment);
  }

  #arguments(args: readonly AstNode[], environment: TemplateEnvironment): CallArguments {
    const positional: TemplateValue[] = [];
    const named = new Map<string, TemplateValue>();
    for (const argument of args) {
      if (argument.type === "KeywordArgumentExpression") {
        named.set((argument.key as AstNode).value as string, this.#run(argument.value, environment));
      } else positional.push(this.#run(argument, environment));
    }
    return { positional, named };
  }

  #run(node: unknown, environment: TemplateEnvironment): TemplateValue {
    return this.evaluate(node as AstNode | undefined, environment);
  }

  #step(): void {
    if (++this.#steps > this.#limits.maxSteps) throw new Error(`it took more than ${this.#limits.maxSteps} steps`);
  }

  /** Texts put together, so that no number of small blocks adds up to something huge. */
  #counted(text: string): TemplateValue {
    this.#totalText += text.length;
    checkLength(this.#totalText, this.#limits.maxTotalText);
    return textOf(text);
  }
}

const noArguments: CallArguments = { positional: [], named: new Map() };

/** A value that stands where the library expects an expression. */
function literal(value: TemplateValue): AstNode {
  return { type: "Literal", value };
}

function characterAt(text: string, index: number): TemplateValue {
  const character = /[\ud800-\udfff]/.test(text) ? Array.from(text).at(index) : text.at(index);
  return character === undefined ? nothing : textOf(character);
}

const ORDERINGS: readonly unknown[] = ["<", "<=", ">", ">="];

function isOrdering(node: unknown): boolean {
  return isNode(node) && node.type === "BinaryExpression" && ORDERINGS.includes((node.operator as AstNode).value);
}

/** How an error speaks of an expression. */
function nameOf(node: AstNode): string {
  return node.type === "Identifier" ? `'${node.value}'` : `'${memberName(node) ?? "a value"}'`;
}
