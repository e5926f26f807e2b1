import { describe, expect, it } from "vitest";
import { firstDifference, isSpecial, label, surprise, TokenReader, textOf, type WireEntry } from "./tokens.ts";

const bytes = (text: string) => [...new TextEncoder().encode(text)];
const entry = (id: number, text: string, logprob = -1): WireEntry => ({
  token: `token_id:${id}`,
  logprob,
  bytes: bytes(text),
});

describe("tokens", () => {
  it("have ids, text and their alternatives, the likeliest first", () => {
    const token = new TokenReader().read({
      ...entry(7, " sea", -2),
      top_logprobs: [entry(7, " sea", -2), entry(9, " lake", -0.5)],
    });
    expect(token).toMatchObject({ id: 7, text: " sea", logprob: -2 });
    expect(token.top.map(({ id, text }) => [id, text])).toEqual([
      [9, " lake"],
      [7, " sea"],
    ]);
  });

  it("give a character that several tokens make up to the last of them", () => {
    const reader = new TokenReader();
    const [first, second] = [
      [0xf0, 0x9f],
      [0x8c, 0x8a, 0x21],
    ].map((part, i) => reader.read({ token: `token_id:${i}`, logprob: 0, bytes: part }));
    expect([first!.text, second!.text]).toEqual(["", "🌊!"]);
    expect(textOf([first!, second!])).toBe("🌊!");
    expect(label(first!)).toBe("⟨f0 9f⟩");
  });

  it("show what cannot be seen", () => {
    expect([" a ", "\n", "\t", ""].map((text) => label({ text }))).toEqual(["␣a␣", "⏎", "⇥", "∅"]);
    expect(["<|im_end|>", "</s>", "<think>", "<b", "a<b>"].map(isSpecial)).toEqual([true, true, true, false, false]);
  });

  it("surprise between certain and six nats", () => {
    expect([0, -3, -60, 0.1].map(surprise)).toEqual([0, 0.5, 1, 0]);
  });

  it("differ first where ids do, or where one reply ends", () => {
    const ids = (...list: number[]) => list.map((id) => ({ id }));
    expect(firstDifference(ids(1, 2, 3), ids(1, 2, 3))).toBe(null);
    expect(firstDifference(ids(1, 2, 3), ids(1, 5, 3))).toBe(1);
    expect(firstDifference(ids(1, 2), ids(1, 2, 3))).toBe(2);
    expect(firstDifference([], [])).toBe(null);
  });
});
