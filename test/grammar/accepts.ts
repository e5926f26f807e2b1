// Does a compiled constraint accept exactly this text?

import { unpackProgram } from "../../src/grammar/automaton/program.ts";
import { Matcher } from "../../src/grammar/match/matcher.ts";

const matchers = new Map<string, Matcher>();

export function acceptsText(key: string, text: string): boolean {
  let matcher = matchers.get(key);
  if (!matcher) {
    matcher = new Matcher(unpackProgram(key.slice(64)));
    matchers.set(key, matcher);
  }
  return matcher.advanceBytes(matcher.start(), new TextEncoder().encode(text))?.accepting ?? false;
}
