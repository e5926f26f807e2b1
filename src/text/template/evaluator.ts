// Runs a template's syntax tree with Python's meaning, within limits on work and size. A template reaches only the values
// it is given and the built-in functions: nothing here looks up a property of a JavaScript object by a template's name.

import { attributeOf, itemOf, sliceOf } from "./attributes.ts";
import { NO_ARGUMENTS, text } from "./builtins.ts";
import { compareWith } from "./comparison.ts";
import { applyFilter } from "./filters.ts";
import { passesTest } from "./is-tests.ts";
import { Loop } from "./loop.ts";
import { binary } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import {
  type Arguments,
  describe,
  type Expression,
  type Filter,
  type ForStatement,
  type MacroBody,
  type Statement,
  type Target,
} from "./syntax.ts";
import { checkLength } from "./text-functions.ts";
import {
  type CallArguments,
  type Callable,
  elements,
  findKey,
  Instance,
  isTrue,
  type Key,
  type Limits,
  Namespace,
  plain,
  type Runtime,
  Scope,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

/** What a block ends with when a loop is to stop or to go on with its next element. */
type Signal = "break" | "continue" | null;

export class Evaluator implements Runtime {
  readonly limits: Limits;
  /** The line of the statement that runs, for error messages. */
  line = 1;
  #output = "";
  #steps = 0;
  #totalText = 0;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  run(template: readonly Statement[], scope: Scope): string {
    this.#execute(template, scope);
    return this.#output;
  }

  applyFilter(name: string, operand: Value, args: CallArguments): Value {
    this.#step();
    return this.#checked(applyFilter(name, operand, args, this));
  }

  #execute(statements: readonly Statement[], scope: Scope): Signal {
    for (const statement of statements) {
      const signal = this.#statement(statement, scope);
      if (signal) return signal;
    }
    return null;
  }

  #statement(statement: Statement, scope: Scope): Signal {
    this.#step();
    this.line = statement.line;
    switch (statement.type) {
      case "text":
        this.#write(statement.text);
        return null;
      case "output":
        this.#write(pythonStr(this.#value(statement.value, scope)));
        return null;
      case "if": {
        const holds = isTrue(this.#value(statement.condition, scope));
        return this.#execute(holds ? statement.body : statement.otherwise, scope);
      }
      case "for":
        return this.#for(statement, this.#value(statement.iterable, scope), scope, 0);
      case "set":
        this.#assign(statement.target, this.#value(statement.value, scope), scope);
        return null;
      case "set block":
        this.#assign(statement.target, this.#filteredBlock(statement, scope), scope);
        return null;
      case "filter block":
        this.#write(pythonStr(this.#filteredBlock(statement, scope)));
        return null;
      case "with": {
        const inner = new Scope(scope);
        for (const [target, value] of statement.bindings) this.#assign(target, this.#value(value, scope), inner);
        return this.#execute(statement.body, inner);
      }
      case "macro":
        scope.set(statement.macro.name, this.#macro(statement.macro, scope));
        return null;
      case "call block":
        this.#write(pythonStr(this.#callBlock(statement.call, statement.caller, scope)));
        return null;
      case "break":
      case "continue":
        return statement.type;
    }
  }

  #for(loop: ForStatement, subject: Value, scope: Scope, depth: number): Signal {
    const { target, condition, body } = loop;
    const open = (item: Value): Scope => {
      this.#step();
      const inner = new Scope(scope);
      this.#assign(target, item, inner);
      return inner;
    };
    let items = elements(plain(subject));
    if (condition) items = items.filter((item) => isTrue(this.#value(condition, open(item))));
    const recurse = (inner: Value): Value => this.#capture(() => this.#for(loop, inner, scope, depth + 1));
    const variable = new Loop(items, depth, loop.isRecursive ? recurse : null);
    let wasFinished = false;
    for (const [at, item] of items.entries()) {
      variable.at = at;
      const inner = open(item);
      inner.set("loop", variable);
      const signal = this.#execute(body, inner);
      wasFinished ||= signal === null;
      if (signal === "break") break;
    }
    // As in Jinja, `else` also follows a loop whose body never came to its end.
    return wasFinished ? null : this.#execute(loop.otherwise, scope);
  }

  #assign(target: Target, value: Value, scope: Scope): void {
    if (target.type === "name") scope.set(target.name, value);
    else if (target.type === "member") {
      const object = scope.get(target.object);
      if (!(object instanceof Namespace)) throw new Error(`'${target.object}' is not a namespace`);
      object.attributes.set(target.name, value);
    } else {
      const values = elements(value);
      if (values.length !== target.items.length) {
        throw new Error(`${values.length} values cannot be assigned to ${target.items.length} names`);
      }
      target.items.forEach((inner, i) => {
        this.#assign(inner, values[i], scope);
      });
    }
  }

  #filteredBlock({ body, filters }: { body: Statement[]; filters: Filter[] }, scope: Scope): Value {
    const inner = new Scope(scope);
    const rendered = this.#capture(() => this.#execute(body, inner));
    return filters.reduce<Value>(
      (value, { name, args }) => this.applyFilter(name, value, this.#arguments(args, scope)),
      rendered,
    );
  }

  /** A macro sees the variables of the place where it stands, not those of its callers. */
  #macro(macro: MacroBody, scope: Scope): Callable {
    const { name, parameters, body, takesMore, takesMoreNamed, takesCaller } = macro;
    return ({ positional, named }) => {
      const inner = new Scope(scope);
      if (positional.length > parameters.length && !takesMore) {
        throw new Error(`macro '${name}' takes at most ${parameters.length} arguments`);
      }
      parameters.forEach((parameter, i) => {
        const given = i < positional.length ? positional[i] : named.get(parameter.name);
        const isGiven = i < positional.length || named.has(parameter.name);
        inner.set(parameter.name, isGiven || !parameter.fallback ? given : this.#value(parameter.fallback, inner));
      });
      const known = new Set(parameters.map((parameter) => parameter.name));
      const more = [...named].filter(([key]) => !known.has(key) && !(key === "caller" && takesCaller));
      if (more.length > 0 && !takesMoreNamed) throw new Error(`macro '${name}' takes no argument '${more[0]![0]}'`);
      if (takesMore) inner.set("varargs", new Tuple(positional.slice(parameters.length)));
      if (takesMoreNamed) inner.set("kwargs", new Map<Key, Value>(more));
      if (takesCaller) inner.set("caller", named.get("caller"));
      return this.#capture(() => this.#execute(body, inner));
    };
  }

  #callBlock(call: Expression, caller: MacroBody, scope: Scope): Value {
    if (call.type !== "call") throw new Error("{% call %} needs a call");
    const { positional, named } = this.#arguments(call.args, scope);
    const withCaller = new Map(named).set("caller", this.#macro(caller, scope));
    return this.#call(call.callee, { positional, named: withCaller }, scope);
  }

  #value(node: Expression, scope: Scope): Value {
    this.#step();
    return this.#checked(this.#evaluate(node, scope));
  }

  #evaluate(node: Expression, scope: Scope): Value {
    switch (node.type) {
      case "constant":
        return node.value;
      case "name":
        return scope.get(node.name);
      case "list":
        return this.#values(node.items, scope);
      case "tuple":
        return new Tuple(this.#values(node.items, scope));
      case "concat": {
        const texts = node.items.map((item) => pythonStr(this.#value(item, scope)));
        checkLength(
          texts.reduce((length, part) => length + part.length, 0),
          this.limits.maxText,
        );
        return texts.join("");
      }
      case "dict":
        return node.pairs.reduce(
          (dict, [key, value]) => dict.set(findKey(dict, this.#value(key, scope)), this.#value(value, scope)),
          new Map<Key, Value>(),
        );
      case "attribute":
        return attributeOf(this.#defined(node.object, scope), node.name, this);
      case "subscript":
        return itemOf(this.#defined(node.object, scope), plain(this.#value(node.index, scope)), this);
      case "slice": {
        const object = this.#defined(node.object, scope);
        const [start, stop, step] = node.bounds.map((bound) => bound && this.#value(bound, scope));
        return sliceOf(object, [start, stop, step]);
      }
      case "call":
        return this.#call(node.callee, this.#arguments(node.args, scope), scope);
      case "filter":
        return this.applyFilter(node.name, this.#value(node.operand, scope), this.#arguments(node.args, scope));
      case "test": {
        const operand = plain(this.#value(node.operand, scope));
        return passesTest(node.name, operand, this.#arguments(node.args, scope).positional[0], this);
      }
      case "not":
        return !isTrue(this.#value(node.operand, scope));
      case "minus":
        return binary("-", 0n, this.#defined(node.operand, scope), this.limits);
      case "plus":
        return binary("+", 0n, this.#defined(node.operand, scope), this.limits);
      case "binary": {
        const left = this.#defined(node.left, scope, false);
        // `"%s" % missing` prints nothing for it.
        const fills = node.operator === "%" && typeof left === "string";
        const right = fills ? this.#value(node.right, scope) : this.#defined(node.right, scope, false);
        return binary(node.operator, left, right, this.limits);
      }
      case "and": {
        const left = this.#value(node.left, scope);
        return isTrue(left) ? this.#value(node.right, scope) : left;
      }
      case "or": {
        const left = this.#value(node.left, scope);
        return isTrue(left) ? left : this.#value(node.right, scope);
      }
      case "compare": {
        let left = plain(this.#value(node.first, scope));
        return node.rest.every(({ operator, operand }) => {
          const right = plain(this.#value(operand, scope));
          const holds = compareWith(operator, left, right);
          left = right;
          return holds;
        });
      }
      case "conditional":
        if (isTrue(this.#value(node.condition, scope))) return this.#value(node.value, scope);
        return node.otherwise ? this.#value(node.otherwise, scope) : undefined;
    }
  }

  #call(callee: Expression, args: CallArguments, scope: Scope): Value {
    const target = this.#defined(callee, scope);
    if (typeof target === "function") return target(args);
    if (target instanceof Instance) return target.call(args);
    throw new Error(`'${typeName(target)}' object is not callable`);
  }

  #arguments({ positional, named, spread, spreadNamed }: Arguments, scope: Scope): CallArguments {
    if (positional.length === 0 && named.length === 0 && !spread && !spreadNamed) return NO_ARGUMENTS;
    const values = this.#values(positional, scope).map(plain);
    if (spread) values.push(...elements(this.#value(spread, scope)));
    const byName = new Map(named.map(([name, value]) => [name, plain(this.#value(value, scope))]));
    const more = spreadNamed ? this.#value(spreadNamed, scope) : null;
    if (more instanceof Map) for (const [name, value] of more) byName.set(text(name), value);
    return { positional: values, named: byName };
  }

  #values(nodes: readonly Expression[], scope: Scope): Value[] {
    return nodes.map((node) => this.#value(node, scope));
  }

  /** The value of an expression that something is about to be done with. */
  #defined(node: Expression, scope: Scope, isPlain = true): Value {
    const value = this.#value(node, scope);
    if (value === undefined) throw new Error(`${describe(node)} is undefined`);
    return isPlain ? plain(value) : value;
  }

  #capture(run: () => unknown): string {
    const before = this.#output;
    this.#output = "";
    run();
    const captured = this.#output;
    this.#output = before;
    return captured;
  }

  #write(part: string): void {
    this.#totalText += part.length;
    checkLength(this.#totalText, this.limits.maxTotalText);
    this.#output += part;
    checkLength(this.#output.length, this.limits.maxText);
  }

  #step(): void {
    if (++this.#steps > this.limits.maxSteps) throw new Error(`it took more than ${this.limits.maxSteps} steps`);
  }

  #checked(value: Value): Value {
    if (typeof value === "string") checkLength(value.length, this.limits.maxText);
    else if (Array.isArray(value) && value.length > this.limits.maxItems) {
      throw new Error(`a list grew beyond ${this.limits.maxItems} elements`);
    }
    return value;
  }
}
