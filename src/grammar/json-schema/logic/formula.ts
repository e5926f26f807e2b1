// Conditions on the members of an object as a boolean formula: "a is present", "b is present and its value satisfies S".
// An object is written member by member, so a formula is evaluated step by step. The remainder after some members is
// again a formula. These remainders are the states of the object's automaton.

import { spendEffort } from "../../compile-effort.ts";
import { canonicalText, type JsonValue, type Schema } from "../keywords.ts";

export type Formula =
  | boolean
  /** The member is present and its value satisfies the schema. */
  | { readonly op: "has"; readonly name: string; readonly schema: Schema }
  | { readonly op: "and" | "or"; readonly parts: readonly Formula[] }
  | { readonly op: "not"; readonly part: Formula };

export function has(name: string, schema: Schema = true): Formula {
  return schema === false ? false : { op: "has", name, schema };
}

export function not(part: Formula): Formula {
  if (typeof part === "boolean") return !part;
  return part.op === "not" ? part.part : { op: "not", part };
}

export function and(...parts: readonly Formula[]): Formula {
  return combined("and", parts);
}

export function or(...parts: readonly Formula[]): Formula {
  return combined("or", parts);
}

function combined(op: "and" | "or", parts: readonly Formula[]): Formula {
  const settles = op === "or";
  spendEffort(2 * parts.length);
  const flat = new Map<string, Formula>();
  for (const part of parts) {
    for (const each of typeof part === "object" && part.op === op ? part.parts : [part]) {
      if (each === settles) return settles;
      if (typeof each === "object") flat.set(formulaKey(each), each);
    }
  }
  if (flat.size < 2) return [...flat.values()][0] ?? !settles;
  for (const part of flat.values()) if (flat.has(formulaKey(not(part)))) return settles;
  return { op, parts: [...flat.keys()].sort().map((key) => flat.get(key)!) };
}

/** Exactly one of the parts holds. */
export function one(parts: readonly Formula[]): Formula {
  return or(...parts.map((part, index) => and(part, ...parts.filter((_, other) => other !== index).map(not))));
}

const keys = new WeakMap<object, string>();

/** Equal formulas give the same text. */
export function formulaKey(formula: Formula): string {
  if (typeof formula === "boolean") return formula ? "1" : "0";
  let key = keys.get(formula);
  if (key === undefined) {
    if (formula.op === "has") key = atomKey(formula.name, formula.schema);
    else if (formula.op === "not") key = `!${formulaKey(formula.part)}`;
    else key = `${formula.op}(${formula.parts.map(formulaKey).join()})`;
    keys.set(formula, key);
  }
  return key;
}

export function atomKey(name: string, schema: Schema): string {
  return `${JSON.stringify(name)}${schema === true ? "" : canonicalText(schema as JsonValue)}`;
}

/** The remaining formula once the conditions on these members are decided. `holds` takes an atomKey. */
export function settled(formula: Formula, names: ReadonlySet<string>, holds: (key: string) => boolean): Formula {
  if (typeof formula === "boolean" || names.size === 0) return formula;
  if (formula.op === "has") return names.has(formula.name) ? holds(formulaKey(formula)) : formula;
  if (formula.op === "not") {
    const part = settled(formula.part, names, holds);
    return part === formula.part ? formula : not(part);
  }
  const parts = formula.parts.map((part) => settled(part, names, holds));
  return parts.every((part, index) => part === formula.parts[index]) ? formula : combined(formula.op, parts);
}

/** All conditions in the formula, each once. With `positive`, only those that can help make it true. */
export function atoms(formula: Formula, positive = false): { name: string; schema: Schema }[] {
  const found = new Map<string, { name: string; schema: Schema }>();
  const visit = (part: Formula, sign: boolean): void => {
    if (typeof part === "boolean") return;
    if (part.op === "has") {
      if (sign || !positive) found.set(formulaKey(part), { name: part.name, schema: part.schema });
    } else if (part.op === "not") visit(part.part, !sign);
    else for (const each of part.parts) visit(each, sign);
  };
  visit(formula, true);
  return [...found.values()];
}
