// Tables of built-in filters, tests and methods. A key is the signature as Python writes it, `"replace(old, new, count)"`;
// arguments reach the function in that order, whether the template gives them by position or by name. `(*)` takes any.

import { type CallArguments, Markup, type Runtime, typeName, type Value } from "./values.ts";

export type Builtin<Subject> = (subject: Subject, call: CallArguments, runtime: Runtime) => Value;

type Body<Subject> = (subject: Subject, args: readonly Value[], runtime: Runtime, call: CallArguments) => Value;

export function builtins<Subject>(
  table: Readonly<Record<string, Body<Subject>>>,
): ReadonlyMap<string, Builtin<Subject>> {
  return new Map(
    Object.entries(table).map(([signature, run]) => {
      const [name, list] = signature.slice(0, -1).split("(") as [string, string];
      const parameters = list === "" ? [] : list.split(", ");
      const bound: Builtin<Subject> = (subject, call, runtime) =>
        run(subject, list === "*" ? call.positional : bind(name, parameters, call), runtime, call);
      return [name, bound];
    }),
  );
}

function bind(name: string, parameters: readonly string[], { positional, named }: CallArguments): readonly Value[] {
  if (positional.length > parameters.length) {
    throw new Error(`${name} takes at most ${parameters.length} arguments, not ${positional.length}`);
  }
  if (named.size === 0) return positional;
  const values = [...positional];
  for (const [key, value] of named) {
    const at = parameters.indexOf(key);
    if (at < positional.length) throw new Error(`${name} has no argument '${key}' to set`);
    values[at] = value;
  }
  return values;
}

export const NO_ARGUMENTS: CallArguments = { positional: [], named: new Map() };

/** An argument that must be a text. */
export function text(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  throw new Error(`a string is needed, not '${typeName(value)}'`);
}

export function textOr<T>(value: Value, fallback: T): string | T {
  return value === undefined || value === null ? fallback : text(value);
}

/** An argument that must be an integer. */
export function integer(value: Value): number {
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  throw new Error(`an integer is needed, not '${typeName(value)}'`);
}

export function integerOr<T>(value: Value, fallback: T): number | T {
  return value === undefined || value === null ? fallback : integer(value);
}

/** A count as an integer of the template. */
export function int(value: number): bigint {
  return BigInt(value);
}
