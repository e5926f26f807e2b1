import { describe, expect, it } from "vitest";
import { ByteTokenizer } from "../../../test/support/byte-tokenizer.ts";
import type { Finish, TokensOutput } from "../../engine/contract.ts";
import { OutputText } from "../../text/output-text.ts";
import { ReasoningParser } from "../../text/reasoning.ts";
import { PlainReplyParser } from "../../text/reply-parser.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import { ChoiceOutput } from "./choice-output.ts";

const tokenizer = new ByteTokenizer();

function choice(
  options: { stops?: string[]; includeStop?: boolean; minTokens?: number; meter?: ReasoningParser } = {},
) {
  return new ChoiceOutput({
    index: 0,
    text: new OutputText(tokenizer, {
      promptTokenIds: [],
      skipSpecialTokens: true,
      stops: options.stops ?? [],
      includeStop: options.includeStop ?? false,
      minTokens: options.minTokens ?? 0,
    }),
    parser: new PlainReplyParser(),
    thoughtMeter: options.meter ?? null,
    logprobs: { walk: new TokenTextWalk(tokenizer), top: 0 },
  });
}

function output(text: string | number[], finish: Finish | null = null): TokensOutput {
  const ids = typeof text === "string" ? [...Buffer.from(text)] : text;
  return { type: "tokens", index: 0, tokens: ids.map((id) => ({ id, logprobs: null })), finish };
}

const textOf = (delta: { parts: { kind: string; text?: string }[] }) =>
  delta.parts.map((part) => part.text ?? "").join("");
const length: Finish = { reason: "length", stopReason: null };

describe("ChoiceOutput", () => {
  it("drops tokens that the engine generated before it learned of a stop string", () => {
    const made = choice({ stops: ["ST"] });
    const delta = made.accept(output("aSTzz"));
    expect([textOf(delta), delta.tokenIds, delta.stopEngine]).toEqual(["a", [...Buffer.from("aST")], true]);
    expect(delta.end).toEqual({ reason: "stop", stopReason: "ST" });
    expect(delta.logprobs).toHaveLength(3);
    const late = made.accept(output("more", length));
    expect([late.parts, late.tokenIds, late.end, made.tokens]).toEqual([[], [], null, 3]);
  });

  it("prefers a stop string to the engine's own end, without telling the engine", () => {
    const delta = choice({ stops: ["b"] }).accept(output("ab", length));
    expect([textOf(delta), delta.end, delta.stopEngine]).toEqual(["a", { reason: "stop", stopReason: "b" }, false]);
  });

  it("omits only the stop token's text, and only for a stop", () => {
    const stop: Finish = { reason: "stop", stopReason: 98 };
    expect(textOf(choice().accept(output("ab", stop)))).toBe("a");
    expect(textOf(choice({ includeStop: true }).accept(output("ab", stop)))).toBe("ab");
    expect(textOf(choice().accept(output("ab", length)))).toBe("ab");
    const repetition: Finish = { reason: "repetition", stopReason: "repetition_detected" };
    expect(textOf(choice().accept(output("ab", repetition)))).toBe("ab");
  });

  it("counts reasoning tokens as they arrive, even when stop strings hold text back, but not the stop token", () => {
    const style = { start: "<t>", end: "</t>", assumed: false };
    const meter = () => new ReasoningParser(style, "optional", new PlainReplyParser());
    for (const stops of [[], ["a stop string longer than all of it"]]) {
      const made = choice({ stops, meter: meter() });
      const deltas = ["<t>", "hm</t>", "yes"].map((text) => made.accept(output(text)));
      // From the last byte of <t> to the one before the last of </t>.
      expect(deltas.map(({ reasoningTokens }) => reasoningTokens)).toEqual([1, 5, 0]);
      expect(deltas.every(({ hasThought }) => hasThought)).toBe(true);
    }
    const stopped = choice({ meter: meter() }).accept(output("<t>b", { reason: "stop", stopReason: 98 }));
    expect([stopped.reasoningTokens, stopped.hasThought]).toEqual([1, true]);
    expect(choice({ meter: meter() }).accept(output("hello", length)).hasThought).toBe(false);
  });

  it("releases held text at the end and drops half a character", () => {
    const held = choice({ stops: ["STOP"] });
    expect(textOf(held.accept(output("aST")))).toBe("");
    expect(textOf(held.accept(output([], length)))).toBe("aST");
    expect(textOf(choice().accept(output([0x61, 0xc3], length)))).toBe("a");
  });
});
