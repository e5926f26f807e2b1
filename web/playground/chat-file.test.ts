import fc from "fast-check";
import { expect, it } from "vitest";
import { fromFile, toFile } from "./chat-file.ts";
import { fromRecords, headOf, type Kept, merged, toAnswersRecord, toRecord } from "./chat-record.ts";
import { type Exchange, emptyReply, startExchange } from "./reply.ts";
import { DEFAULTS } from "./settings.ts";
import { TokenList } from "./token-list.ts";
import type { WireEntry } from "./tokens.ts";
import type { Answers, Question, Turn } from "./tree.ts";

const ENTRIES: WireEntry[] = [
  {
    ...{ token: "token_id:7", logprob: -0.30000000000000004, bytes: [32, 97] },
    top_logprobs: [{ token: "token_id:8", logprob: -2, bytes: [0xe2, 0x82] }],
  },
  { token: "token_id:7", logprob: -1, bytes: [97], top_logprobs: [] },
];

function keptChat(): Kept {
  const tokens = new TokenList();
  for (const entry of ENTRIES) tokens.add(entry);
  const hi = { role: "user" as const, content: "Hi there" };
  const question: Question = { kind: "question", id: "q", after: null, messages: [hi] };
  const exchange: Exchange = {
    ...startExchange({ model: "m", messages: [hi], seed: 3 }, 5),
    ...{ state: "done", promptIds: [1, 2], replies: [{ ...emptyReply(), content: " a", tokens, tokenIds: [7, 7] }] },
  };
  const answers: Answers = { kind: "answers", id: "a", to: "q", exchange, sent: { output: "text", constraint: "" } };
  const turns = new Map<string, Turn>([question, answers].map((turn) => [turn.id, turn]));
  const columns = [{ picks: { "": "q", q: "a:0" } }];
  const chat = { id: "c", title: null, at: 9, turns, columns, startsAt: null };
  return { chat, settings: { ...DEFAULTS, system: "Be brief." }, draft: "more", deleted: [] };
}

const entriesOf = ({ chat }: Kept) => {
  const { tokens } = (chat.turns.get("a") as Answers).exchange.replies[0]!;
  return Array.from({ length: tokens.length }, (_, at) => tokens.entry(at));
};

it("keeps a chat in records and in a file, with every bit of its tokens", () => {
  const kept = keptChat();
  const answers = toAnswersRecord("c", kept.chat.turns.get("a") as Answers);
  for (const again of [fromRecords(toRecord(kept), [answers]), fromFile(toFile(kept))]) {
    expect(again).toMatchObject({ draft: "more", settings: { system: "Be brief." } });
    const { exchange } = again.chat.turns.get("a") as Answers;
    expect(exchange.body).toEqual({ model: "m", messages: [{ role: "user", content: "Hi there" }], seed: 3 });
    expect(exchange.replies[0]).toMatchObject({ content: " a", tokenIds: [7, 7] });
    expect(entriesOf(again)).toEqual(ENTRIES);
  }
  expect(headOf(kept)).toMatchObject({ id: "c", title: "Hi there", said: "Hi there" });
});

it("takes little room for a token", () => {
  const tokens = new TokenList();
  const alternative = (id: number) => ({
    token: `token_id:${id}`,
    logprob: -id / 7,
    bytes: [...`word${id}`].map((sign) => sign.charCodeAt(0)),
  });
  for (let i = 0; i < 2000; i++) {
    const top_logprobs = [1, 2, 3, 4, 5].map((more) => alternative((i * more) % 1000));
    tokens.add({ ...alternative(i % 1000), top_logprobs });
  }
  const bytes = Object.values(tokens.pack()).reduce((sum, array) => sum + array.byteLength, 0);
  expect(bytes / 2000).toBeLessThan(100);
});

it("says that a file is no conversation, whatever it holds", () => {
  for (const text of [
    "",
    "{",
    "null",
    "{}",
    "[]",
    "[1]",
    '{"object":"flywheel.chat"}',
    '{"object":"flywheel.chat","version":2}',
  ]) {
    expect(() => fromFile(text)).toThrow("no conversation");
  }
  const file = JSON.parse(toFile(keptChat()));
  file.answers[0].replies[0].tokens.words = { array: "Int32Array", base64: "/////w==" };
  expect(() => fromFile(JSON.stringify(file))).toThrow("no conversation");
  fc.assert(
    fc.property(fc.json(), (text) => {
      try {
        expect(fromFile(text).chat.turns).toBeInstanceOf(Map);
      } catch (error) {
        expect((error as Error).message).toContain("no conversation");
      }
    }),
  );
});

it("reads a list of messages", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "And?" },
  ];
  const { chat, settings } = fromFile(JSON.stringify({ messages }));
  expect(settings.system).toBe("Be brief.");
  expect([...chat.turns.values()].map(({ kind }) => kind)).toEqual(["question", "answers", "question"]);
});

it("joins what two tabs made of a chat, and brings nothing back that was deleted", () => {
  const mine = toRecord(keptChat());
  const other: Question = { kind: "question", id: "q2", after: { turn: "a", reply: 0 }, messages: [] };
  const theirs = {
    ...mine,
    turns: [...mine.turns, { ...other, messages: [] }],
    draft: "theirs",
    columns: [{ picks: { "a:0": "q2" } }],
  };
  const both = merged(mine, theirs);
  expect(both.turns.map(({ id }) => id)).toEqual(["q", "a", "q2"]);
  expect(both).toMatchObject({ draft: "more", columns: [{ picks: { "": "q", q: "a:0", "a:0": "q2" } }] });
  const gone = merged({ ...mine, deleted: ["q2"] }, theirs);
  expect(gone.turns.map(({ id }) => id)).toEqual(["q", "a"]);
  expect(gone.columns[0]!.picks).toEqual({ "": "q", q: "a:0" });
});
