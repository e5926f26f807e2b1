// A grammar source of either kind: EBNF, or Lark when it has no ::=.

import type { Expression, GrammarBuilder } from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { parseEbnf } from "./ebnf.ts";
import { parseLark } from "./lark.ts";

export function parseGrammarSource(source: string, builder: GrammarBuilder): Expression {
  if (source.trim() === "") throw new GrammarError("the grammar is empty");
  return source.includes("::=") ? parseEbnf(source, builder) : parseLark(source, builder);
}
