// Object schemas: declared properties in order, any optional ones left out, and further ones where the schema allows
// them.
import { complementDfa, intersectDfas, otherThan } from "../../char-dfa.ts";
import { type CharDfa, choice, type Expression, isNever, text } from "../../expression.ts";
import { countTexts } from "../arrays/value-count.ts";
import type { SchemaContext } from "../context.ts";
import type { JsonText } from "../json-text.ts";
import { type Schema, schemaError } from "../keywords.ts";
import type { Conjunction } from "../logic/conjunction.ts";
import { and, atomKey, atoms, type Formula, has, or, settled } from "../logic/formula.ts";
import { type Extras, type Member, ObjectContent } from "./object-content.ts";
import { allowedNames, memberSchema, nameClasses, namesDfa } from "./property-names.ts";

// Members that an object must have under some name, not a certain one: what "not" around patternProperties,
// additionalProperties and propertyNames asks for. Such a member is written once, after the declared ones. Where a second
// member of the same name could undo it, further members have none of its names.

/** No property can have this name, because a lone surrogate is not text. */
const NO_NAME = "\ud800";

function standIn(index: number): string {
  return NO_NAME + index;
}

function isStandIn(name: string): boolean {
  return name.startsWith(NO_NAME);
}

/** The object has the members it must have: declared ones, or those that demandedMembers writes. */
function membersExist(context: SchemaContext, all: Conjunction, declared: readonly string[], path: string): Formula {
  const formulas = all.some.map(({ names, schema }, index) => {
    const fitting = declared.filter((name) => context.conforms(name, names, path));
    return or(has(standIn(index)), ...fitting.map((name) => has(name, schema)));
  });
  return and(...formulas);
}

/** `apart`: the names left to further members; null = all. */
function demandedMembers(
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

/** How to write an object: as JSON, or as the arguments of a call. */
export interface ObjectStyle {
  member(name: string, value: Expression): Expression;
  /** A member with one of these keys; null if this style has none. */
  extra(keys: CharDfa, value: Expression): Expression | null;
  readonly comma: Expression;
  readonly none: string;
  /** `open`: the automaton alone could repeat a name. */
  wrap(content: Expression, open: boolean): Expression;
}

function jsonStyle(json: JsonText): ObjectStyle {
  return {
    member: (name, value) => json.member(text(JSON.stringify(name)), value),
    extra: (keys, value) => json.member(json.quoted({ kind: "dfa", dfa: keys, json: true }), value),
    comma: json.comma(),
    none: "{}",
    wrap: (content, open) => json.braces(content, open),
  };
}

export function compileObject(context: SchemaContext, all: Conjunction, path: string, given?: ObjectStyle): Expression {
  const style = given ?? jsonStyle(context.text);
  const { minProperties: min, maxProperties: max, layers } = all;
  if (max !== null && max < min) return context.impossible('"maxProperties" is less than "minProperties"', path);
  const names = allowedNames(context, all.names, path);
  const listed = names && "listed" in names ? names.listed : null;
  const allowed = names && "dfa" in names ? names.dfa : null;
  const declared = declaredNames(all);
  const open = isOpen(context, all, declared);
  const condition = and(...all.conditions, membersExist(context, all, [...declared, ...(listed ?? [])], path));
  if (declared.length === 0 && open && names === null && isFree(all) && !given) return context.text.anyObject;
  // A name that only needs to be absent is not written, unless it could be among the further members.
  const further = open || listed !== null || layers.some((layer) => layer.patterns.length > 0);
  const mentioned = atoms(condition, !further).flatMap(({ name }) => (isStandIn(name) ? [] : [name]));
  const written = [...new Set([...declared, ...(listed ?? []), ...mentioned])];
  const required = new Set(all.required);
  const members: Member[] = [];
  const { builder } = context.text;
  const shared = (part: Expression): Expression => (part.kind === "rule" ? part : builder.rule(part));
  const absent = new Set<string>();
  for (const name of written) {
    const named = names === null || context.conforms(name, namesSchema(context, all), `${path}/propertyNames`);
    const schema = named ? memberSchema(context, layers, name, path) : false;
    const variants = memberVariants(context, schema, name, condition, `${path}/properties/${name}`);
    if (variants.length === 0) {
      if (required.has(name)) return impossibleMember(context, name, schema, path);
      absent.add(name);
      continue;
    }
    members.push({
      name,
      required: required.has(name),
      variants: variants.map(({ value, holds }) => ({ expression: style.member(name, shared(value)), holds })),
    });
  }
  const demanded =
    listed === null
      ? demandedMembers(context, all, written, allowed, (keys, value) => style.extra(keys, value), path)
      : { members: [], apart: null };
  members.push(...demanded.members);
  const known = new Set(members.map((member) => member.name));
  for (const { name } of atoms(condition)) if (!known.has(name)) absent.add(name);
  const left = settled(condition, absent, () => false);
  const extras = listed === null ? furtherMembers(context, all, written, demanded.apart, open, style, path) : null;
  const { freeOrder, openObjects } = context.options;
  const anyOrder = freeOrder && !given;
  const demands = { min, max, condition: left, anyOrder, keptApart: !given, extrasAnywhere: openObjects };
  const content = new ObjectContent(style.comma, members, extras, demands, shared);
  const options: Expression[] = [];
  if (content.mayBeEmpty) options.push(text(style.none));
  if (max !== 0 && (members.length > 0 || extras !== null)) {
    const some = content.expression();
    if (!isNever(some)) options.push(style.wrap(some, content.mayRepeat));
  }
  return options.length === 0 ? context.impossible("no object satisfies the schema", path) : choice(...options);
}

function namesSchema(context: SchemaContext, all: Conjunction): Schema {
  return all.names.reduce((a, b) => context.cases.both(a, b));
}

function impossibleMember(context: SchemaContext, name: string, schema: Schema, path: string): Expression {
  const shown = JSON.stringify(name.slice(0, 40));
  return context.impossible(
    schema === false
      ? `the required property ${shown} is neither declared nor allowed`
      : `no value fits the required property ${shown}`,
    path,
  );
}

/** Declared properties, then required names without a declaration. */
function declaredNames({ layers, required }: Conjunction): string[] {
  return [...new Set([...layers.flatMap((layer) => Object.keys(layer.properties)), ...required])];
}

function isFree(all: Conjunction): boolean {
  return (
    all.minProperties === 0 &&
    all.maxProperties === null &&
    all.conditions.length === 0 &&
    all.some.length === 0 &&
    all.layers.every(({ patterns, additional }) => patterns.length === 0 && (additional ?? true) === true)
  );
}

/** Undeclared properties are generated only on request, or if nothing at all is declared. */
function isOpen(context: SchemaContext, { layers }: Conjunction, declared: readonly string[]): boolean {
  if (layers.some((layer) => layer.additional !== null)) return true;
  if (context.options.openObjects) return true;
  if (context.options.closedObjects || layers.some((layer) => layer.patterns.length > 0)) return false;
  return declared.length === 0;
}

/** Limit for the combinations of conditions on one member. */
const MAX_VARIANTS = 64;

/** One variant of the member for every possible combination of the conditions on its value. */
function memberVariants(
  context: SchemaContext,
  schema: Schema,
  name: string,
  condition: Formula,
  path: string,
): { value: Expression; holds: ReadonlySet<string> }[] {
  const { cases } = context;
  let variants = [{ schema, holds: [atomKey(name, true)] }];
  for (const atom of atoms(condition)) {
    if (atom.name !== name || atom.schema === true) continue;
    const key = atomKey(name, atom.schema);
    variants = variants.flatMap((variant) => [
      { schema: cases.both(variant.schema, atom.schema), holds: [...variant.holds, key] },
      { schema: cases.both(variant.schema, cases.opposite(atom.schema)), holds: variant.holds },
    ]);
    variants = variants.filter((variant) => cases.of(variant.schema, path).length > 0);
    if (variants.length > MAX_VARIANTS) throw schemaError("too many conditions on the value of a property", path);
  }
  return variants
    .map((variant) => ({ value: context.compile(variant.schema, path), holds: new Set(variant.holds) }))
    .filter(({ value }) => !isNever(value));
}

function furtherMembers(
  context: SchemaContext,
  { layers }: Conjunction,
  written: readonly string[],
  allowed: CharDfa | null,
  open: boolean,
  style: ObjectStyle,
  path: string,
): Extras | null {
  if (!open && layers.every((layer) => layer.patterns.length === 0)) return null;
  const classes: { keys: CharDfa; value: Expression }[] = [];
  for (const { keys, schema, matched } of nameClasses(context, written, allowed, layers, path)) {
    if (schema === false || (!open && !matched)) continue;
    const value = context.compile(schema, `${path}/${matched ? "patternProperties" : "additionalProperties"}`);
    if (!isNever(value)) classes.push({ keys, value });
  }
  const any = choice(...classes.flatMap(({ keys, value }) => style.extra(keys, value) ?? []));
  if (isNever(any)) return null;
  const names = classes.reduce((sum, { keys }) => sum + countTexts(keys), 0);
  return { any: context.text.builder.rule(any), names };
}
