import { expect, test } from "vitest";
import type { CodePointSet } from "../code-points.ts";
import { StateGraph } from "./state-graph.ts";

test("texts with a common prefix share its states", () => {
  const graph = new StateGraph();
  const [from, to] = [graph.state(), graph.state()];
  graph.texts(from, ["value", "valid", "van"], to);
  expect(graph.size).toBe(2 + "value".length + "id".length + "n".length);
});

test("characters in a JSON string are escaped where JSON requires it", () => {
  const graph = new StateGraph();
  const [from, to] = [graph.state(), graph.state()];
  graph.jsonCharacters(from, [[0x0a, 0x0a]], to);
  const backslash = "\\".charCodeAt(0);
  const n = "n".charCodeAt(0);
  const edges = Array.from({ length: graph.byteEdges.length / 4 }, (_, i) => graph.byteEdges.slice(4 * i, 4 * i + 4));
  const [first] = edges.filter(([state]) => state === from);
  expect(first!.slice(0, 3)).toEqual([from, backslash, backslash]);
  expect(edges.find(([state]) => state === first![3])!.slice(1, 3)).toEqual([n, n]);
});

test("characters that lead to the same place share their states", () => {
  const graph = new StateGraph();
  const states = Array.from({ length: 10 }, () => graph.state());
  const any: CodePointSet = [[0, 0x10ffff]];
  graph.jsonCharacters(states[0]!, any, states[9]!);
  const once = graph.size;
  for (const from of states.slice(1)) graph.jsonCharacters(from, any, states[9]!);
  expect(graph.size).toBe(once);
});

test("a graph that grows too large is an error", () => {
  const graph = new StateGraph();
  expect(() => {
    for (;;) graph.state();
  }).toThrow(/the constraint is too large: it needs more than 400000 states/);
});
