// What every template can use besides its variables: the constants and functions of Jinja and of
// chat templates.

import { pairsOf } from "./filters.ts";
import { LibraryEnvironment, type TemplateEnvironment, type TemplateValue } from "./library.ts";
import { elementsOf } from "./list-filters.ts";
import { strftime } from "./strftime.ts";
import { capitalise } from "./text-functions.ts";
import { type CallArguments, functionOf, keyOf, nothing, objectOf, type TemplateEntries, textOf } from "./values.ts";

const MAX_RANGE = 100_000;

/** What a template raises on purpose; the message is meant for the caller, word for word. */
export class Raised extends Error {}

const CONSTANTS = [
  ["true", true],
  ["false", false],
  ["none", null],
] as const;

const functions = {
  raise_exception(message: unknown): never {
    throw new Raised(String(message));
  },
  strftime_now(format: unknown): string {
    return strftime(new Date(), String(format));
  },
  range(first: number, second?: number, step = 1): number[] {
    const [from, to] = second === undefined ? [0, first] : [first, second];
    if (!Number.isInteger(step) || step === 0) throw new Error("range() needs a step other than 0");
    const length = Math.max(0, Math.ceil((to - from) / step));
    if (!(length <= MAX_RANGE)) throw new Error(`range() gives at most ${MAX_RANGE} numbers`);
    return Array.from({ length }, (_, i) => from + i * step);
  },
};

/** Functions that take or give values of the template language. */
const valueFunctions: Readonly<Record<string, (args: CallArguments) => TemplateValue>> = {
  dict({ positional: [source = nothing], named }) {
    const pairs = source.value instanceof Map ? pairsOf(source) : elementsOf(source);
    const entries: TemplateEntries = new Map();
    for (const pair of pairs) {
      const [key, value, ...more] = elementsOf(pair);
      const name = key && keyOf(key);
      if (name === undefined || name === null || !value || more.length > 0) throw new Error("dict() needs pairs");
      entries.set(name, value);
    }
    for (const [name, value] of named) entries.set(name, value);
    return objectOf(entries);
  },
  /** Nothing when first called, the separator from then on. */
  joiner({ positional, named }) {
    const separator = positional[0] ?? named.get("sep") ?? textOf(", ");
    let used = false;
    return functionOf(() => {
      const text = used ? separator : textOf("");
      used = true;
      return text;
    });
  },
  cycler({ positional: items }) {
    if (items.length === 0) throw new Error("cycler() needs something to go through");
    const entries: TemplateEntries = new Map();
    const moveTo = (at: number): void => {
      entries.set("current", items[at % items.length]!);
      position = at % items.length;
    };
    let position = 0;
    moveTo(0);
    entries.set(
      "next",
      functionOf(() => {
        const current = items[position]!;
        moveTo(position + 1);
        return current;
      }),
    );
    entries.set(
      "reset",
      functionOf(() => {
        moveTo(0);
        return nothing;
      }),
    );
    return objectOf(entries);
  },
};

/** Names a variable cannot take. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ...Object.keys(functions),
  ...Object.keys(valueFunctions),
  ...CONSTANTS.flatMap(([name]) => [name, capitalise(name)]),
  "namespace",
]);

export function createEnvironment(): TemplateEnvironment {
  const environment = new LibraryEnvironment();
  for (const [name, value] of CONSTANTS) {
    environment.set(name, value);
    environment.set(capitalise(name), value);
  }
  for (const [name, run] of Object.entries(functions)) environment.set(name, run);
  for (const [name, run] of Object.entries(valueFunctions)) environment.setVariable(name, functionOf(run));
  return environment;
}
