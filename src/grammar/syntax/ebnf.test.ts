import { describe, expect, test } from "vitest";
import { acceptsText } from "../../../test/grammar/accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, refusal, Walker } from "../../../test/grammar/walk.ts";
import { xgrammar, accepts as xgrammarAccepts } from "../../../test/grammar/xgrammar.ts";

const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

const sql = `
root ::= select_statement
select_statement ::= "SELECT " column " from " table " where " condition
column ::= "col_1 " | "col_2 "   # two columns
table ::= "table_1 " | "table_2 "
condition ::= column "= " number
number ::= "1 " | "2 "
`;
const arithmetic = 'root ::= expr\nexpr ::= expr ("+" | "*") expr | "(" expr ")" | [0-9]{1,3}';
const rightRecursive = 'root ::= "[" items "]"\nitems ::= [a-z]+ | [a-z]+ "," items';
const nullable = 'root ::= a b c\na ::= "x"*\nb ::= ("y" a)? \nc ::= a | "z" "é"+';
const escapes = 'root ::= "\\"\\\\\\n\\u00e9" [^"\\\\\\n]{2} [\\x41-C\\-]';

describe("EBNF", () => {
  test.each([
    [sql, ["SELECT col_1  from table_2  where col_2 = 1 "], ["SELECT col_3", ""]],
    [arithmetic, ["1", "12+(3*4)+5", "((7))"], ["", "1+", "(1", "1234"]],
    [rightRecursive, ["[a]", "[ab,c,d]"], ["[]", "[a,]"]],
    [nullable, ["", "xxyxx", "zéé", "xyz\u00e9"], ["z", "yy"]],
    [escapes, ['"\\\néabA', '"\\\nézz-'], ['"\\\néa"A']],
  ])("accepts and generates like XGrammar: %s", async (source, yes, no) => {
    const key = keyOf({ kind: "grammar", source });
    for (const text of yes) expect(acceptsText(key, text), text).toBe(true);
    for (const text of no) expect(acceptsText(key, text), text).toBe(false);
    const judge = await xgrammar.Grammar.fromEBNF(source);
    for (const walker of walkers) {
      for (let seed = 0; seed < 10; seed++) {
        const { text } = walker.walk(key, seed, 20, 400);
        if (acceptsText(key, text)) expect(await xgrammarAccepts(judge, text), text).toBe(true);
      }
    }
  });

  test("memory does not grow with the length of a list", () => {
    const walker = walkers[0]!;
    const constraint = walker.factory.create(keyOf({ kind: "grammar", source: rightRecursive }), [], false);
    constraint.accept(0x5b);
    for (let i = 0; i < 20_000; i++) for (const char of "ab,") constraint.accept(char.charCodeAt(0));
    constraint.accept(0x61);
    constraint.accept(0x5d);
    expect(constraint.mask()).toBeNull();
  });

  test("an error gives the line and column", () => {
    const message = (source: string) => refusal({ kind: "grammar", source });
    expect(message('root ::= "a" missing')).toBe("invalid grammar: rule missing is not defined, at line 1, column 14");
    expect(message('root ::= "a"\nroot ::= "b"')).toMatch(/defined twice, at line 2, column 1/);
    expect(message('root ::= "a')).toMatch(/unclosed string, at line 1, column 10/);
    expect(message('root ::= ("a"')).toMatch(/unclosed \(, at line 1, column 10/);
    expect(message('a ::= "b"')).toMatch(/no rule named root/);
    expect(message("root ::= root")).toMatch(/can never be satisfied/);
    expect(message("root ::= [z-a]")).toMatch(/wrong order/);
    expect(message("   ")).toMatch(/the grammar is empty/);
    expect(message(`root ::= ${"(".repeat(5000)}`)).toMatch(/nested deeper than 200/);
  });
});
