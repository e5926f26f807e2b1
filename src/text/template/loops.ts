// Loops as Jinja runs them: every iteration has a scope of its own, so that what one iteration sets the next one does
// not see, and break and continue keep the text printed before them.

import { type AstNode, walk } from "./ast.ts";
import { LibraryEnvironment, type TemplateEnvironment, type TemplateValue } from "./library.ts";
import { elementsOf } from "./list-filters.ts";
import { equal } from "./operators.ts";
import { booleanOf, functionOf, integerOf, listOf, nothing, objectOf, type TemplateEntries } from "./values.ts";

/** Thrown by break and continue; gathers the text of the blocks it passes through. */
export class LoopSignal extends Error {
  readonly kind: "break" | "continue";
  text = "";

  constructor(kind: "break" | "continue") {
    super(`${kind} outside of a loop`);
    this.kind = kind;
  }
}

export interface LoopHost {
  value(node: AstNode, environment: TemplateEnvironment): TemplateValue;
  block(statements: readonly AstNode[], environment: TemplateEnvironment): string;
  /** Counts one iteration as work. */
  step(): void;
}

export function runLoop(node: AstNode, environment: TemplateEnvironment, host: LoopHost): string {
  const items = loopItems(node, environment, host);
  const needsLoop = mentionsLoop(node);
  const changed = changeTest();
  let text = "";
  let completed = false;
  for (let index = 0; index < items.length; index++) {
    host.step();
    const scope = openScope(node, items[index]!, environment);
    if (needsLoop) scope.setVariable("loop", loopVariable(index, items, changed));
    try {
      text += host.block(node.body as AstNode[], scope);
      completed = true;
    } catch (signal) {
      if (!(signal instanceof LoopSignal)) throw signal;
      text += signal.text;
      if (signal.kind === "break") break;
    }
  }
  // As in Jinja, "else" also follows a loop none of whose iterations reached its end.
  return completed ? text : text + host.block(node.defaultBlock as AstNode[], environment);
}

/** What the loop walks over, without what `for ... if` leaves out. */
function loopItems(node: AstNode, environment: TemplateEnvironment, host: LoopHost): TemplateValue[] {
  const iterable = node.iterable as AstNode;
  const condition = iterable.type === "SelectExpression" ? (iterable.test as AstNode) : null;
  const subject = host.value(condition ? (iterable.lhs as AstNode) : iterable, environment);
  if (subject.type === "NullValue") throw new Error("none cannot be looped over");
  const items = elementsOf(subject);
  if (condition === null) return items;
  return items.filter((item) => host.value(condition, openScope(node, item, environment)).__bool__().value);
}

function openScope(node: AstNode, item: TemplateValue, environment: TemplateEnvironment): TemplateEnvironment {
  const scope = new LibraryEnvironment(environment);
  assign(node.loopvar as AstNode, item, scope);
  return scope;
}

const loopMentions = new WeakMap<AstNode, boolean>();

/** Making the loop variable costs more than most bodies: it is made where it is mentioned. */
function mentionsLoop(node: AstNode): boolean {
  let mentioned = loopMentions.get(node);
  if (mentioned === undefined) {
    mentioned = false;
    walk(node.body, (inner) => {
      mentioned ||= inner.type === "Identifier" && inner.value === "loop";
    });
    loopMentions.set(node, mentioned);
  }
  return mentioned;
}

function assign(target: AstNode, item: TemplateValue, scope: TemplateEnvironment): void {
  if (target.type === "Identifier") {
    scope.setVariable(target.value as string, item);
    return;
  }
  const names = target.value as AstNode[];
  const values = elementsOf(item);
  if (names.length !== values.length) throw new Error(`${names.length} names for ${values.length} values in a loop`);
  names.forEach((name, i) => {
    assign(name, values[i]!, scope);
  });
}

/** loop.changed(): whether it is called with other values than the last time in this loop. */
function changeTest(): TemplateValue {
  let last: TemplateValue | null = null;
  return functionOf(({ positional }) => {
    const values = listOf(positional);
    const isChanged = last === null || !equal(values, last);
    last = values;
    return booleanOf(isChanged);
  });
}

function loopVariable(index: number, items: readonly TemplateValue[], changed: TemplateValue): TemplateValue {
  const { length } = items;
  const entries: TemplateEntries = new Map([
    ["index", integerOf(index + 1)],
    ["index0", integerOf(index)],
    ["revindex", integerOf(length - index)],
    ["revindex0", integerOf(length - index - 1)],
    ["first", booleanOf(index === 0)],
    ["last", booleanOf(index === length - 1)],
    ["length", integerOf(length)],
    ["previtem", items[index - 1] ?? nothing],
    ["nextitem", items[index + 1] ?? nothing],
    ["changed", changed],
    ["cycle", functionOf(({ positional }) => positional[index % positional.length] ?? nothing)],
  ]);
  return objectOf(entries);
}
