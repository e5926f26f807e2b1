import { expect, it } from "vitest";
import { type Exchange, emptyReply, startExchange } from "./reply.ts";
import {
  type Answers,
  type Column,
  endOf,
  messagesOf,
  type Question,
  type Turn,
  type Turns,
  versionsOf,
  wayOf,
  without,
} from "./tree.ts";

const question = (id: string, after: Question["after"] = null): Question => ({
  ...{ kind: "question", id, after },
  messages: [{ role: "user", content: id }],
});
const answers = (id: string, to: string, ...contents: string[]): Answers => {
  const replies = contents.map((content) => ({ ...emptyReply(), content }));
  const exchange: Exchange = { ...startExchange({ model: "m" }, 0), state: "done", replies };
  return { kind: "answers", id, to, exchange, sent: { output: "text", constraint: "" } };
};
const treeOf = (...turns: Turn[]): Turns => new Map(turns.map((turn) => [turn.id, turn]));

// q1 – a1 (two replies); after the second: q2 – a2, a3 (again) and q3, another version of q2
const TREE = treeOf(
  question("q1"),
  answers("a1", "q1", "one", "uno"),
  question("q2", { turn: "a1", reply: 1 }),
  answers("a2", "q2", "two"),
  answers("a3", "q2", "due"),
  question("q3", { turn: "a1", reply: 1 }),
);
const wayIn = (turns: Turns, column: Column) =>
  wayOf(turns, versionsOf(turns), column).map(({ question, answers, reply }) => [question.id, answers?.id, reply]);

it("is one way per column, and goes on with the newest question where none was picked", () => {
  expect(wayIn(TREE, { picks: { "": "q1", q1: "a1:1", "a1:1": "q2", q2: "a3:0" } })).toEqual([
    ["q1", "a1", 1],
    ["q2", "a3", 0],
  ]);
  expect(wayIn(TREE, { picks: { q1: "a1:1" } })).toEqual([
    ["q1", "a1", 1],
    ["q3", undefined, 0],
  ]);
  expect(wayIn(TREE, { picks: { q1: "a1:0" } })).toEqual([["q1", "a1", 0]]);
  expect(wayIn(TREE, { picks: { "": "gone", q1: "gone:0" } })).toEqual([["q1", undefined, 0]]);
  expect(wayIn(new Map(), { picks: {} })).toEqual([]);
});

it("has versions of questions and of answers", () => {
  const { questions, places } = versionsOf(TREE);
  expect(questions.get("a1:1")).toEqual(["q2", "q3"]);
  expect(places.get("q1")).toEqual([
    { turn: "a1", reply: 0 },
    { turn: "a1", reply: 1 },
  ]);
  expect(places.get("q2")!.map(({ turn }) => turn)).toEqual(["a2", "a3"]);
});

it("sends what was answered, from where it starts", () => {
  const rounds = wayOf(TREE, versionsOf(TREE), { picks: { q1: "a1:1", "a1:1": "q2", q2: "a3:0" } });
  const contents = (startsAt: string | null) => messagesOf(rounds, startsAt).map(({ content }) => content);
  expect(contents(null)).toEqual(["q1", "uno", "q2", "due"]);
  expect(contents("q2")).toEqual(["q2", "due"]);
  expect(endOf(rounds)).toEqual({ turn: "a3", reply: 0 });
  const failed = treeOf(question("q1"), answers("a1", "q1", ""));
  const round = wayOf(failed, versionsOf(failed), { picks: { q1: "a1:0" } });
  expect(messagesOf(round, null)).toEqual([]);
  expect(messagesOf(round, null)).toEqual([]);
  // the same message each time, so that it is kept once
  expect(messagesOf(rounds, null)[1]).toBe(messagesOf(rounds, null)[1]);
});

it("loses a turn without what followed it", () => {
  const columns = [{ picks: { "": "q1", q1: "a1:1", "a1:1": "q2", q2: "a3:0" } }];
  const first = without(TREE, columns, "q1");
  expect(first.gone).toEqual(["q1", "a1"]);
  expect(wayIn(first.turns, first.columns[0]!)).toEqual([["q2", "a3", 0]]);
  const last = without(TREE, columns, "q2");
  expect(last.gone).toEqual(["q2", "a2", "a3"]);
  expect(wayIn(last.turns, last.columns[0]!)).toEqual([
    ["q1", "a1", 1],
    ["q3", undefined, 0],
  ]);
});
