import { expect, test } from "vitest";
import { Matcher } from "../match/matcher.ts";
import { joinBeginnings } from "./common-beginnings.ts";
import { linkProgram } from "./link.ts";
import { StateGraph } from "./state-graph.ts";

/** One path for each word, from the start to an end that all share. `links`: each begins behind a link to the one before. */
function graphOf(words: readonly string[], links = false): StateGraph {
  const graph = new StateGraph();
  const start = graph.state();
  const end = graph.state();
  graph.finals.add(end);
  let from = start;
  for (const word of words) {
    let at = from;
    for (const [index, letter] of [...word].entries()) {
      const next = index === word.length - 1 ? end : graph.state();
      graph.byteRange(at, letter.charCodeAt(0), letter.charCodeAt(0), next);
      at = next;
    }
    if (links) {
      const skipped = graph.state();
      graph.epsilon(from, skipped);
      from = skipped;
    }
  }
  return graph;
}

function matcherOf(graph: StateGraph): Matcher {
  graph.state(); // the start of the rule behind a marker, which cannot be matched
  return new Matcher(linkProgram({ graph, starts: [0, graph.size - 1], marker: "" }));
}

function accepts(matcher: Matcher, text: string): boolean {
  return matcher.advanceBytes(matcher.start(), Buffer.from(text))?.accepting ?? false;
}

const words = Array.from({ length: 200 }, (_, i) => `field_${String(i).padStart(3, "0")}`);

test.each([false, true])("accepts the same texts, and nothing else (links: %s)", (links) => {
  const joined = graphOf(words, links);
  joinBeginnings(joined);
  const [plain, fewer] = [matcherOf(graphOf(words, links)), matcherOf(joined)];
  for (const word of [...words, "field_200", "field_", "field_0000", "xield_000", ""]) {
    expect(accepts(fewer, word), word).toBe(accepts(plain, word));
  }
});

test.each([false, true])("few alternatives are left at any time (links: %s)", (links) => {
  const joined = graphOf(words, links);
  joinBeginnings(joined);
  const most = (matcher: Matcher): number => {
    let [at, found] = [matcher.start(), 0];
    for (const byte of Buffer.from("field_12")) {
      at = matcher.advance(at, matcher.program.classes[byte]!)!;
      found = Math.max(found, ...at.items.sets.map(({ states }) => states.length));
    }
    return found;
  };
  expect(most(matcherOf(graphOf(words, links)))).toBe(words.length);
  expect(most(matcherOf(joined))).toBeLessThanOrEqual(10);
});

test("a state entered by a mark stays apart from one that is not", () => {
  const marked = (joining: boolean): Matcher => {
    const graph = graphOf([]);
    for (let i = 0; i < 40; i++) {
      const behind = graph.state();
      if (i % 2 === 0) graph.marked.add(behind);
      graph.byteRange(0, 0x5b, 0x5b, behind);
      graph.byteRange(behind, 0x61 + (i % 26), 0x61 + (i % 26), 1);
    }
    if (joining) joinBeginnings(graph);
    return matcherOf(graph);
  };
  const kinds = (matcher: Matcher): Set<number> => {
    const behind = matcher.advance(matcher.start(), matcher.program.classes[0x5b]!)!;
    return new Set(behind.kernel.sets.flatMap(({ kernel }) => kernel.map((state) => matcher.program.marks[state]!)));
  };
  expect(kinds(marked(true))).toEqual(kinds(marked(false)));
  expect(accepts(marked(true), "[c")).toBe(true);
});
