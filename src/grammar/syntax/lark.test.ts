import { describe, expect, test } from "vitest";
import { acceptsText } from "../../../test/grammar/accepts.ts";
import { keyOf, refusal } from "../../../test/grammar/walk.ts";

describe("Lark", () => {
  const select = `
    start: select_statement
    select_statement: "SELECT" column "from" table ("where" condition)?
    column: "col_1" | "col_2"   // columns
    ?table: /table_\\d/i -> tab
    condition: column "=" NUMBER
    %import common.NUMBER
    %import common.WS
    %ignore WS
  `;
  test("reads rules, terminals, imports and %ignore", () => {
    const key = keyOf({ kind: "grammar", source: select });
    for (const text of [
      "SELECT col_1 from TABLE_3",
      "SELECT  col_1\nfrom table_3 where col_2=1.5 ",
      "SELECTcol_1fromtable_1",
    ]) {
      expect(acceptsText(key, text), text).toBe(true);
    }
    expect(acceptsText(key, "SELECT col_1 from table_x")).toBe(false);
    expect(acceptsText(key, "SEL ECT col_1 from table_1")).toBe(false);
  });

  test("reads counts, options, ranges, priorities and flags", () => {
    const source = `
      first: "a"~2 "b"~1..3 ["c"] D+
           | "x".."z" _e*
      D.2: "0".."4" | "Q"i
      !_e: "(" first ")"
    `;
    const key = keyOf({ kind: "grammar", source });
    for (const text of ["aab0", "aabbbc44q", "x", "y(aabQ)(z)"]) expect(acceptsText(key, text), text).toBe(true);
    for (const text of ["ab0", "aabbbb0", "aab5", "w"]) expect(acceptsText(key, text), text).toBe(false);
  });

  test("an error gives the line and column", () => {
    const message = (source: string) => refusal({ kind: "grammar", source });
    expect(message("start: missing")).toBe("invalid Lark grammar: missing is not defined, at line 1, column 8");
    expect(message('start: "a"\n%declare X')).toMatch(/%declare is not supported, at line 2, column 1/);
    expect(message("start: a{b}")).toMatch(/templates are not supported/);
    expect(message("start: /(/")).toMatch(/unclosed group/);
    expect(message("%import common.NOPE\nstart: NOPE")).toMatch(/common.NOPE does not exist/);
    expect(message("just some words")).toMatch(/expected a rule/);
  });
});
