// What every template can use besides its variables: the constants and the three functions of chat templates.

import { LibraryEnvironment, type TemplateEnvironment } from "./library.ts";
import { strftime } from "./strftime.ts";
import { capitalise } from "./text-functions.ts";

const maxRange = 100_000;

/** What a template raises on purpose; the message is meant for the caller, word for word. */
export class Raised extends Error {}

const constants = [
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
    if (!(length <= maxRange)) throw new Error(`range() gives at most ${maxRange} numbers`);
    return Array.from({ length }, (_, i) => from + i * step);
  },
};

/** Names a variable cannot take. */
export const reservedNames: ReadonlySet<string> = new Set([
  ...Object.keys(functions),
  ...constants.flatMap(([name]) => [name, capitalise(name)]),
  "namespace",
]);

export function createEnvironment(): TemplateEnvironment {
  const environment = new LibraryEnvironment();
  for (const [name, value] of constants) {
    environment.set(name, value);
    environment.set(capitalise(name), value);
  }
  for (const [name, run] of Object.entries(functions)) environment.set(name, run);
  return environment;
}
