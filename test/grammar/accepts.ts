// Checks whether a compiled constraint accepts a text as a whole.

import { GrammarConstraintFactory } from "../../src/grammar/match/constraint-factory.ts";
import { byteVocabulary, legalTokens } from "./walk.ts";

const factory = new GrammarConstraintFactory(byteVocabulary);
const STOP = byteVocabulary.size - 1;

export function acceptsText(key: string, text: string): boolean {
  const constraint = factory.create(key, [STOP], false);
  for (const byte of new TextEncoder().encode(text)) {
    if (!legalTokens(constraint.mask()!, byteVocabulary.size).includes(byte)) return false;
    constraint.accept(byte);
  }
  return legalTokens(constraint.mask()!, byteVocabulary.size).includes(STOP);
}
