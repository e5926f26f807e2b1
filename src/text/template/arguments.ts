// What a template passes to a filter or a method, by position or by name.

import type { TemplateValue } from "./library.ts";
import type { CallArguments } from "./values.ts";

export function argument(args: CallArguments, position: number, name: string): TemplateValue | undefined {
  return args.positional[position] ?? args.named.get(name);
}

/** null: not given, or no text. */
export function textOrNull(value: TemplateValue | undefined): string | null {
  return value?.type === "StringValue" ? (value.value as string) : null;
}

/** null: not given, or no integer. */
export function integerOrNull(value: TemplateValue | undefined): number | null {
  return value?.type === "IntegerValue" ? (value.value as number) : null;
}
