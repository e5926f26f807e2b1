import { expect, it } from "vitest";
import { markPrintedNumbers, TooManyNumbers } from "./exact-json.ts";

it("looks at so many printed numbers only, and at others not at all", () => {
  const numbers = `[${"1.0,".repeat(9)}1.0]`;
  expect(markPrintedNumbers(`{"arguments":${numbers},"x":${numbers}}`, 10).split("number")).toHaveLength(11);
  expect(() => markPrintedNumbers(`{"arguments":${numbers},"parameters":[1]}`, 10)).toThrow(TooManyNumbers);
});
