// The same texts as written inside a JSON string, with as few escapes as possible.

import { ESCAPED_IN_JSON, intersectSets, subtractSets } from "./code-points.ts";
import {
  charSet,
  choice,
  type Expression,
  GrammarBuilder,
  type RuleId,
  repeat,
  sequence,
  texts,
} from "./expression.ts";

/** Without `ruleOf`, which says what a rule becomes, the expression must have no rules. */
export function jsonEncoded(expression: Expression, ruleOf?: (rule: RuleId) => RuleId): Expression {
  const encoded = (part: Expression): Expression => jsonEncoded(part, ruleOf);
  switch (expression.kind) {
    case "set": {
      const special = intersectSets(expression.set, ESCAPED_IN_JSON);
      const raw = charSet(subtractSets(expression.set, ESCAPED_IN_JSON));
      if (special.length === 0) return raw;
      const escapes: string[] = [];
      for (const [low, high] of special) {
        for (let point = low; point <= high; point++) {
          escapes.push(JSON.stringify(String.fromCodePoint(point)).slice(1, -1));
        }
      }
      return choice(raw, texts(escapes));
    }
    case "texts":
      return texts(expression.texts.map((value) => JSON.stringify(value).slice(1, -1)));
    case "sequence":
      return sequence(...expression.parts.map(encoded));
    case "choice":
      return choice(...expression.options.map(encoded));
    case "repeat":
      return repeat(encoded(expression.body), expression.min, expression.max);
    case "dfa":
      return { ...expression, json: true };
    case "rule":
      if (ruleOf !== undefined) return { kind: "rule", rule: ruleOf(expression.rule) };
      throw new Error("a rule has no JSON form here");
    default:
      throw new Error(`${expression.kind} has no JSON form`);
  }
}

/** The texts of a whole grammar. `parse` adds its rules to a builder and returns its start. */
export function jsonEncodedGrammar(builder: GrammarBuilder, parse: (own: GrammarBuilder) => Expression): Expression {
  const own = new GrammarBuilder();
  const { rules, root } = own.finish(parse(own));
  const ids = rules.map(() => builder.declare());
  const ruleOf = (rule: RuleId): RuleId => ids[rule]!;
  for (const [rule, body] of rules.entries()) builder.define(ruleOf(rule), jsonEncoded(body, ruleOf));
  return jsonEncoded(root, ruleOf);
}
