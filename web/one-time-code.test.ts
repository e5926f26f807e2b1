import { expect, it } from "vitest";
import { codeIn } from "./one-time-code.ts";

it("finds the code of a sign-in link", () => {
  expect(codeIn("#code=a-b_1")).toBe("a-b_1");
  expect(codeIn("#code=")).toBe(null);
  expect(codeIn("#section")).toBe(null);
  expect(codeIn("")).toBe(null);
});
