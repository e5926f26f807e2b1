// Members that an object must have under some name, not a certain one: what "not" around patternProperties,
// additionalProperties and propertyNames asks for. Such a member is written once, after the declared ones. Where a second
// member of the same name could undo it, further members have none of its names.

import { complementDfa, intersectDfas, otherThan } from "../../char-dfa.ts";
import { type CharDfa, choice, type Expression, isNever } from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import type { Conjunction } from "../logic/conjunction.ts";
import { and, atomKey, type Formula, has, or } from "../logic/formula.ts";
import type { Member } from "./object-content.ts";
import { allowedNames, nameClasses, namesDfa } from "./property-names.ts";

/** No property can have this name, because a lone surrogate is not text. */
const NO_NAME = "\ud800";

function standIn(index: number): string {
  return NO_NAME + index;
}

export function isStandIn(name: string): boolean {
  return name.startsWith(NO_NAME);
}

/** The object has the members it must have: declared ones, or those that demandedMembers writes. */
export function membersExist(
  context: SchemaContext,
  all: Conjunction,
  declared: readonly string[],
  path: string,
): Formula {
  const formulas = all.some.map(({ names, schema }, index) => {
    const fitting = declared.filter((name) => context.conforms(name, names, path));
    return or(has(standIn(index)), ...fitting.map((name) => has(name, schema)));
  });
  return and(...formulas);
}

/** `apart`: the names left to further members; null = all. */
export function demandedMembers(
  context: SchemaContext,
  all: Conjunction,
  written: readonly string[],
  allowed: CharDfa | null,
  extra: (keys: CharDfa, value: Expression) => Expression | null,
  path: string,
): { members: Member[]; apart: CharDfa | null } {
  const subject = `the names at ${path}`;
  const members: Member[] = [];
  let apart = allowed;
  for (const [index, { names, schema }] of all.some.entries()) {
    const demanded = namesDfa(allowedNames(context, [names], path), path) ?? otherThan([]);
    const keys = apart === null ? demanded : intersectDfas(apart, demanded, subject);
    const options = nameClasses(context, written, keys, all.layers, path).flatMap((each) => {
      const value = context.compile(context.cases.both(each.schema, schema), path);
      return isNever(value) ? [] : (extra(each.keys, value) ?? []);
    });
    if (schema !== true || all.minProperties > 0) {
      const others = complementDfa(demanded);
      apart = apart === null ? others : intersectDfas(apart, others, subject);
    }
    if (options.length === 0) continue;
    const name = standIn(index);
    const expression = context.text.builder.rule(choice(...options));
    members.push({ name, required: false, variants: [{ expression, holds: new Set([atomKey(name, true)]) }] });
  }
  return { members, apart };
}
