// Making template values. The library does not export its value classes, so they are taken from values it makes itself.

import { EXACT_NUMBER_KEY, isJsonNumber } from "../../json/exact-json.ts";
import { LibraryEnvironment, LibraryInterpreter, type TemplateEnvironment, type TemplateValue } from "./library.ts";

/** What an object holds. Keys that a template writes as integers stay numbers: `{0: "a"}` has no key "0". */
export type TemplateEntries = Map<string | number, TemplateValue>;

type Constructor<T> = new (value: T) => TemplateValue;

const samples = new LibraryEnvironment();
const StringValue = samples.set("text", "").constructor as Constructor<string>;
const BooleanValue = samples.set("flag", true).constructor as Constructor<boolean>;
const IntegerValue = samples.set("number", 0).constructor as Constructor<number>;
const FloatValue = samples.set("fraction", 0.5).constructor as Constructor<number>;
const ArrayValue = samples.set("list", []).constructor as Constructor<TemplateValue[]>;
const ObjectValue = samples.set("object", {}).constructor as Constructor<TemplateEntries>;
const emptyTuple = new LibraryInterpreter(samples).evaluate({ type: "TupleLiteral", value: [] }, samples);
const TupleValue = emptyTuple.constructor as Constructor<TemplateValue[]>;

/** A function as the library calls it: named arguments come last, as one value. */
export type LibraryFunction = (args: TemplateValue[], callerScope: TemplateEnvironment) => TemplateValue;

export const FunctionValue = samples.set("function", () => null).constructor as Constructor<LibraryFunction>;

export interface CallArguments {
  positional: TemplateValue[];
  named: Map<string, TemplateValue>;
}

export function functionOf(run: (args: CallArguments) => TemplateValue): TemplateValue {
  return new FunctionValue((args) => {
    const last = args.at(-1);
    if (last?.type !== "KeywordArgumentsValue") return run({ positional: args, named: new Map() });
    return run({ positional: args.slice(0, -1), named: last.value as Map<string, TemplateValue> });
  });
}

/** The undefined value. */
export const nothing: TemplateValue = samples.set("nothing", undefined);
/** None. */
export const none: TemplateValue = samples.set("none", null);

export const textOf = (value: string): TemplateValue => new StringValue(value);

/** A text that the filters `safe` and `escape` give: what is added to it with "+" is escaped, as in Python. */
export const markupOf = (value: string): TemplateValue => Object.assign(new StringValue(value), { isMarkup: true });
export const isMarkup = (value: TemplateValue): boolean => "isMarkup" in value;

const yes = new BooleanValue(true);
const no = new BooleanValue(false);
export const booleanOf = (value: boolean): TemplateValue => (value ? yes : no);
export const integerOf = (value: number): TemplateValue => new IntegerValue(value);
export const floatOf = (value: number): TemplateValue => new FloatValue(value);
export const listOf = (value: TemplateValue[]): TemplateValue => new ArrayValue(value);
export const tupleOf = (value: TemplateValue[]): TemplateValue => new TupleValue(value);
export const objectOf = (value: TemplateEntries): TemplateValue => new ObjectValue(value);

/** The key of an object as a value, and a value as a key (null: it cannot be one). */
export const keyValue = (key: string | number): TemplateValue =>
  typeof key === "string" ? textOf(key) : integerOf(key);

/** The entries of an object as (key, value). */
export const pairsIn = (entries: TemplateEntries): TemplateValue[] =>
  Array.from(entries, ([key, value]) => tupleOf([keyValue(key), value]));
export function keyOf({ type, value }: TemplateValue): string | number | null {
  return type === "StringValue" || type === "IntegerValue" ? (value as string | number) : null;
}

/** An integer with more digits than a double has; arithmetic with it is not exact. */
export interface LongInteger extends TemplateValue {
  readonly digits: string;
}

/** The value, with numbers in place of the objects that stand for them (see exact-json.ts). Changes lists and objects. */
export function withExactNumbers(value: TemplateValue): TemplateValue {
  const inner = value.value;
  if (Array.isArray(inner)) {
    inner.forEach((item: TemplateValue, i) => {
      inner[i] = withExactNumbers(item);
    });
  } else if (inner instanceof Map) {
    const written = (inner.get(EXACT_NUMBER_KEY) as TemplateValue | undefined)?.value;
    if (inner.size === 1 && isJsonNumber(written)) return numberOf(written);
    for (const [key, item] of inner as TemplateEntries) inner.set(key, withExactNumbers(item));
  }
  return value;
}

function numberOf(written: string): TemplateValue {
  if (/[.eE]/.test(written)) return new FloatValue(Number(written));
  return Object.assign(new IntegerValue(Number(written)), { digits: written });
}

export function isIterable({ type, value }: Pick<TemplateValue, "type" | "value">): boolean {
  return type === "UndefinedValue" || typeof value === "string" || Array.isArray(value) || value instanceof Map;
}
