// Making template values. The library does not export its value classes, so they are taken from values it makes itself.

import { LibraryEnvironment, type TemplateValue } from "./library.ts";

type Constructor<T> = new (value: T) => TemplateValue;

const samples = new LibraryEnvironment();
const StringValue = samples.set("text", "").constructor as Constructor<string>;
const BooleanValue = samples.set("flag", true).constructor as Constructor<boolean>;
const IntegerValue = samples.set("number", 0).constructor as Constructor<number>;
const ArrayValue = samples.set("list", []).constructor as Constructor<TemplateValue[]>;
const ObjectValue = samples.set("object", {}).constructor as Constructor<Map<string, TemplateValue>>;

/** The undefined value. */
export const nothing: TemplateValue = samples.set("nothing", undefined);

export const textOf = (value: string): TemplateValue => new StringValue(value);
const yes = new BooleanValue(true);
const no = new BooleanValue(false);
export const booleanOf = (value: boolean): TemplateValue => (value ? yes : no);
export const integerOf = (value: number): TemplateValue => new IntegerValue(value);
export const listOf = (value: TemplateValue[]): TemplateValue => new ArrayValue(value);
export const objectOf = (value: Map<string, TemplateValue>): TemplateValue => new ObjectValue(value);

export function isIterable({ type, value }: TemplateValue): boolean {
  return type === "UndefinedValue" || typeof value === "string" || Array.isArray(value) || value instanceof Map;
}
