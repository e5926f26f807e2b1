import { expect, test } from "vitest";
import { compileConstraint } from "../compile.ts";
import { packProgram, unpackProgram } from "./program.ts";

test("packing and unpacking gives the same program", () => {
  const program = compileConstraint({
    shape: { kind: "grammar", source: 'root ::= "(" root ")" | [a-zé]{2,5}' },
    reasoning: { start: "<a>", end: "</a>", mode: "optional" },
  });
  expect(unpackProgram(packProgram(program))).toEqual(program);
});
