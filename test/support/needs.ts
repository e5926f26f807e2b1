// What some tests need that not every machine has. Where it is missing, they are skipped under a name that says so:
// "… [needs curl]". The tiers (test/tiers) count these, and fail for a test that is skipped without a word.
import { describe, it, type TestOptions } from "vitest";

export interface Need {
  /** Completes "this test needs …". */
  readonly what: string;
  readonly met: boolean;
}

export const need = (what: string, met: boolean): Need => ({ what, met });

export const LINUX = need("Linux", process.platform === "linux");
export const POSIX = need("POSIX modes and links", process.platform !== "win32");
/** The tests of the API run a second time with the engine in another server (project "remote"). */
export const EMBEDDED_ENGINE = need("an engine in the same process", process.env.FLYWHEEL_TEST_ENGINE !== "remote");
export const TORCH = need(
  "FLYWHEEL_TORCH_PYTHON, a Python with torch and transformers",
  Boolean(process.env.FLYWHEEL_TORCH_PYTHON),
);

type Body = () => void | Promise<void>;
type EachBody<T> = (given: T) => void | Promise<void>;

/** `it` and `describe` of tests that need this. */
export function needing(...needs: readonly Need[]) {
  const missing = needs.filter(({ met }) => !met);
  const named = (name: string) => name + missing.map(({ what }) => ` [needs ${what}]`).join("");
  const skip = missing.length > 0;
  return {
    it: (name: string, body: Body, timeout?: number) => it.skipIf(skip)(named(name), body, timeout),
    itEach: <T>(cases: readonly T[], name: string, body: EachBody<T>) => it.skipIf(skip).each(cases)(named(name), body),
    describe: (name: string, ...rest: [body: Body] | [options: TestOptions, body: Body]) =>
      rest.length === 1
        ? describe.skipIf(skip)(named(name), rest[0])
        : describe.skipIf(skip)(named(name), rest[0], rest[1]),
  };
}
