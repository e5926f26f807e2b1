import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toyEncoder, toyIds } from "../../../test/support/toy-encoder.ts";
import { TokenMismatchError, tokeniseHistory } from "./tokenise.ts";
import type { HistoryItem, HistoryMessage, SampledChoice } from "./trajectory.ts";

const user = (content: string): HistoryItem => ({ message: { role: "user", texts: [content] } });
const assistant = (content: string): HistoryItem => ({ message: { role: "assistant", texts: [content] } });
const choice = (content: string, fields: Partial<SampledChoice>): HistoryItem => ({
  choice: {
    message: { role: "assistant", texts: [content] },
    promptTokenIds: null,
    tokenIds: null,
    logprobs: null,
    tokens: null,
    ...fields,
  },
});
const call = { type: "function" as const, function: { name: "f", arguments: {} } };
const spelled = (tokens: string) => toyIds(tokens).map((id) => `token_id:${id}`);
const falling = (count: number) => Array.from({ length: count }, (_, i) => -(i + 1) / 10);
/** A choice whose ids are spelled in its log-probability entries. */
const sampled = (content: string, tokens: string) =>
  choice(content, { tokens: spelled(tokens), logprobs: falling(toyIds(tokens).length) });

const anyLength = { maxTokens: Number.POSITIVE_INFINITY, giveWay: async () => {} };

function tokenise(items: HistoryItem[], allowWithoutLogprobs = false) {
  return tokeniseHistory({ items, tools: null }, toyEncoder, { allowWithoutLogprobs, ...anyLength });
}
/** The only sequence of a history: its tokens as text and the trained ones among them. */
async function single(items: HistoryItem[], allow = false) {
  const { sequences } = await tokenise(items, allow);
  expect(sequences).toHaveLength(1);
  const [sequence] = sequences;
  const words = sequence!.ids.map((id) => toyEncoder.word(id));
  return { sequence: sequence!, words, trained: words.filter((_, i) => sequence!.mask[i] === 1) };
}

describe("template path (ChatML-like toy: <s> role NL content <e> NL)", () => {
  it("masks only the sampled tokens and adds no second end token", async () => {
    const { sequence, words, trained } = await single([user("q1"), sampled("a1", "a1 <e>")]);
    expect(words).toEqual("<s> user NL q1 <e> NL <s> assistant NL a1 <e>".split(" "));
    expect(sequence.mask).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    expect(trained).toEqual(["a1", "<e>"]);
    expect(sequence.oldLogprobs.slice(9)).toEqual([-0.1, -0.2]);
    expect(sequence.oldLogprobs.slice(0, 9).every(Number.isNaN)).toBe(true);
  });

  it("a reply cut by length gets no end token", async () => {
    const { words, trained } = await single([user("q1"), sampled("a1", "a1")]);
    expect(words).toHaveLength(10);
    expect(words.at(-1)).toBe("a1");
    expect(trained).toEqual(["a1"]);
  });

  it("two choices are one sequence, nothing between them is trained", async () => {
    const { words, trained } = await single([
      user("q1"),
      sampled("a1", "a1 <e>"),
      user("q2"),
      sampled("a2 a3", "a2 a3 <e>"),
    ]);
    expect(trained).toEqual(["a1", "<e>", "a2", "a3", "<e>"]);
    expect(words.join(" ")).toBe(
      "<s> user NL q1 <e> NL <s> assistant NL a1 <e> NL <s> user NL q2 <e> NL <s> assistant NL a2 a3 <e>",
    );
  });

  it("a turn after a reply cut by length continues the sequence; the template's end token is context", async () => {
    const { trained } = await single([user("q1"), sampled("a1", "a1"), user("q2"), sampled("a2", "a2 <e>")]);
    expect(trained).toEqual(["a1", "a2", "<e>"]);
  });

  it("an assistant message is context", async () => {
    const { trained } = await single([user("q1"), assistant("a1"), user("q2"), sampled("a2", "a2 <e>")]);
    expect(trained).toEqual(["a2", "<e>"]);
  });

  it("items after the last choice are left out", async () => {
    const { words } = await single([user("q1"), sampled("a1", "a1 <e>"), user("q2")]);
    expect(words).not.toContain("q2");
  });

  it.each([
    ["only messages", [user("q1"), assistant("a1")]],
    ["a choice without log-probabilities", [user("q1"), choice("a1", { tokenIds: toyIds("a1 <e>") })]],
  ])("%s: nothing to train", async (_name, items) => {
    expect((await tokenise(items)).sequences).toEqual([]);
  });

  it("messages are trained on request, without old log-probabilities and without an end token", async () => {
    const { sequence, words, trained } = await single([user("q1"), assistant("a1")], true);
    expect(trained).toEqual(["a1"]);
    expect(words.at(-1)).toBe("a1");
    expect(sequence.oldLogprobs.every(Number.isNaN)).toBe(true);
    await expect(
      tokenise([user("q1"), { message: { role: "assistant", texts: [], toolCalls: [call] } }], true),
    ).rejects.toThrow(/tool calls can only be trained from its token ids/);
  });

  it("sampled ids win over the text", async () => {
    expect((await single([user("q1"), sampled("a1 a2", "a3 <e>")])).trained).toEqual(["a3", "<e>"]);
  });

  it("token texts are looked up, an empty one is the end of sequence", async () => {
    const item = choice("a1", { tokens: ["a1", ""], logprobs: [-0.1, -0.2] });
    expect((await single([user("q1"), item])).trained).toEqual(["a1", "<e>"]);
  });

  it("the bytes of an entry win over its text", async () => {
    const bytes = [null, [...Buffer.from("a2")], []];
    const item = choice("a1", { tokens: ["a1", "a1", ""], bytes, logprobs: [-0.1, -0.2, -0.3] });
    expect((await single([user("q1"), item])).trained).toEqual(["a1", "a2", "<e>"]);
  });

  it("an empty text before the end is not the end of sequence: the reply is tokenised again", async () => {
    const items = [user("q1"), choice("a1 a2", { tokens: ["a1", "", "a2"], logprobs: [-0.1, -0.2, -0.3] })];
    expect((await single(items)).trained).toEqual(["a1", "a2"]);
    expect((await tokenise(items)).retokenised).toBe(1);
  });

  it("falls back to the text, without its log-probabilities, when a token text is unknown", async () => {
    const items = [user("q1"), choice("a1 a2", { tokens: ["a1 a2"], logprobs: [-0.1] })];
    const { sequence, trained } = await single(items);
    expect(trained).toEqual(["a1", "a2"]);
    expect(sequence.oldLogprobs.every(Number.isNaN)).toBe(true);
    expect((await tokenise(items)).retokenised).toBe(1);
  });

  it("joins content parts as rendering does, and names parts that it cannot read", async () => {
    const texts: string[] = [];
    const encodeText = (text: string) => {
      texts.push(text);
      return toyIds("a1");
    };
    const noting = { ...toyEncoder, encodeText };
    const train = (content: Omit<HistoryMessage, "role">) =>
      tokeniseHistory({ items: [user("q1"), { message: { role: "assistant", ...content } }], tools: null }, noting, {
        allowWithoutLogprobs: true,
        ...anyLength,
      });
    await train({ texts: ["a1", "no", "a2"] });
    expect(texts).toEqual(["a1\nno\na2"]);
    const image = { texts: [], refusal: { field: ".content.0.type", reason: "text only" } };
    await expect(train(image)).rejects.toMatchObject({ param: "messages.1.content.0.type" });
  });

  it("never trains the messages of a captured call", async () => {
    const items = [user("q1"), assistant("a1"), user("q2"), sampled("a2", "a2 <e>")];
    const requestAt = "exchanges.chat_completions[0].request";
    const options = { allowWithoutLogprobs: true, ...anyLength };
    const { sequences } = await tokeniseHistory({ items, tools: null, requestAt }, toyEncoder, options);
    const trained = sequences.map(({ ids, mask }) => ids.filter((_, i) => mask[i] === 1).map(toyEncoder.word));
    expect(trained).toEqual([["a2", "<e>"]]);
  });

  it("drops the empty thought a template adds when the reply opens its own", async () => {
    const items = [{ message: { role: "think", texts: ["q1"] } }, sampled("a1", "<think> a1 <e>")];
    expect((await single(items)).words.join(" ")).toBe("<s> think NL q1 <e> NL <s> assistant NL <think> a1 <e>");
  });

  it("renders the tools", async () => {
    const tools = [{ type: "function" as const, function: { name: "a3", description: null, parameters: null } }];
    const history = { items: [user("q1"), sampled("a1", "a1 <e>")], tools };
    const { sequences } = await tokeniseHistory(history, toyEncoder, { allowWithoutLogprobs: false, ...anyLength });
    expect(toyEncoder.word(sequences[0]!.ids[3]!)).toBe("a3");
  });
});

describe("exact-token path", () => {
  const turn = (prompt: string, output: string) =>
    choice("ignored", {
      promptTokenIds: toyIds(prompt),
      tokenIds: toyIds(output),
      logprobs: falling(toyIds(output).length),
    });

  it("a prompt that extends the sequence continues it", async () => {
    const { words, trained } = await single([
      user("q1"),
      turn("q1", "a1 <e>"),
      user("q2"),
      turn("q1 a1 <e> NL q2", "a2 <e>"),
    ]);
    expect(words).toEqual("q1 a1 <e> NL q2 a2 <e>".split(" "));
    expect(trained).toEqual(["a1", "<e>", "a2", "<e>"]);
  });

  it("any other prompt starts a new sequence, and each choice is trained once", async () => {
    const { sequences } = await tokenise([user("q1"), turn("q1", "a1 <e>"), user("q2"), turn("q1 <e> q2", "a2 <e>")]);
    expect(sequences.map(({ ids }) => ids.map((id) => toyEncoder.word(id)).join(" "))).toEqual([
      "q1 a1 <e>",
      "q1 <e> q2 a2 <e>",
    ]);
  });

  it("rejects a record with more or fewer log-probabilities than tokens as corrupt", async () => {
    const items = [user("q1"), choice("a1", { tokenIds: toyIds("a1 <e>"), logprobs: [-0.1] })];
    await expect(tokenise(items)).rejects.toThrow(TokenMismatchError);
    await expect(tokenise(items)).rejects.toThrow(/1 log-probabilities for 2 tokens/);
    await expect(tokenise(items)).rejects.toMatchObject({ element: 1, corrupt: true });
  });

  it.each([
    ["output", { tokenIds: [9999], logprobs: [-1] }],
    ["prompt", { promptTokenIds: [-1], tokenIds: [1], logprobs: [-1] }],
  ])("refuses %s ids outside the vocabulary", async (_where, fields) => {
    await expect(tokenise([user("q1"), choice("a1", fields)])).rejects.toThrow(/outside the vocabulary/);
  });

  it("never trains a token that nothing predicts", async () => {
    const item = choice("a1", { promptTokenIds: [], tokenIds: toyIds("a1 <e>"), logprobs: [-1, -2] });
    expect((await single([item])).sequence.mask).toEqual([0, 1]);
    expect((await tokenise([choice("a1", { promptTokenIds: [], tokenIds: [1], logprobs: [-1] })])).sequences).toEqual(
      [],
    );
  });

  it("property: every sampled token appears once, after exactly its own prompt", async () => {
    const ids = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ fresh: fc.boolean(), suffix: ids, output: ids }), { minLength: 1 }),
        async (turns) => {
          let sofar: number[] = [];
          const spans = turns.map(({ fresh, suffix, output }) => {
            const prompt = [...(fresh ? [] : sofar), ...suffix];
            sofar = [...prompt, ...output];
            return { prompt, output };
          });
          const { sequences } = await tokenise(
            spans.map(({ prompt, output }) =>
              choice("", { promptTokenIds: prompt, tokenIds: output, logprobs: falling(output.length) }),
            ),
          );
          const trained = sequences.reduce((sum, { mask }) => sum + mask.filter((bit) => bit === 1).length, 0);
          expect(trained).toBe(spans.reduce((sum, { output }) => sum + output.length, 0));
          for (const { prompt, output } of spans) {
            const whole = [...prompt, ...output];
            const holds = sequences.some(
              ({ ids, mask }) =>
                whole.every((id, i) => ids[i] === id) && output.every((_, i) => mask[prompt.length + i] === 1),
            );
            expect(holds).toBe(true);
          }
        },
      ),
    );
  });
});
