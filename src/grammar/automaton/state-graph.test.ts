import { expect, test } from "vitest";
import { StateGraph } from "./state-graph.ts";

test("texts with a common prefix share its states", () => {
  const graph = new StateGraph();
  const [from, to] = [graph.state(), graph.state()];
  graph.texts(from, ["value", "valid", "van"], to);
  expect(graph.states.length).toBe(2 + "value".length + "id".length + "n".length);
});

test("characters in a JSON string are escaped where JSON requires it", () => {
  const graph = new StateGraph();
  const [from, to] = [graph.state(), graph.state()];
  graph.jsonCharacters(from, [[0x0a, 0x0a]], to);
  const [first] = graph.states[from]!.bytes;
  expect(first).toBe("\\".charCodeAt(0));
});

test("a graph that grows too large is an error", () => {
  const graph = new StateGraph();
  expect(() => {
    for (;;) graph.state();
  }).toThrow(/the constraint is too large: it needs more than 400000 states/);
});
