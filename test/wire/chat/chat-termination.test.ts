// How replies end, and which tokens may be in them.
import { describe, expect, it } from "vitest";
import { babble, sharedServer } from "../../support/shared-server.ts";
import { says } from "../../support/test-server.ts";

const server = sharedServer();
const EOS = 2;

describe("termination", () => {
  it("gives stop_reason as null, an id or a string", async () => {
    const choice = async (body: object) => (await server.chat({ messages: says("one.two"), ...body })).choices[0];
    expect(await choice({})).toMatchObject({
      finish_reason: "stop",
      stop_reason: null,
      message: { content: "one.two" },
    });
    expect(await choice({ max_tokens: 3 })).toMatchObject({
      finish_reason: "length",
      stop_reason: null,
      message: { content: "one" },
    });
    expect(await choice({ max_tokens: 8, max_completion_tokens: 2 })).toMatchObject({ message: { content: "on" } });
    expect(await choice({ stop_token_ids: [46], return_token_ids: true })).toMatchObject({
      finish_reason: "stop",
      stop_reason: 46,
      message: { content: "one" },
      token_ids: [...Buffer.from("one.")],
    });
    expect(await choice({ stop: ["e.t"], return_token_ids: true })).toMatchObject({
      finish_reason: "stop",
      stop_reason: "e.t",
      message: { content: "on" },
      token_ids: [...Buffer.from("one.t")],
    });
    expect(await choice({ stop: "e.t", include_stop_str_in_output: true })).toMatchObject({
      message: { content: "one.t" },
    });
    expect(await choice({ stop_token_ids: [46], include_stop_str_in_output: true })).toMatchObject({
      message: { content: "one." },
    });
    expect(await choice({ stop: ["two"], max_tokens: 7 })).toMatchObject({ finish_reason: "stop", stop_reason: "two" });
  });

  it("honours ignore_eos, min_tokens and repetition detection", async () => {
    const ignoring = await server.chat({
      messages: says("ab"),
      ignore_eos: true,
      max_tokens: 6,
      return_token_ids: true,
    });
    expect(ignoring.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "ab" } });
    expect(ignoring.choices[0].token_ids).toEqual([97, 98, EOS, EOS, EOS, EOS]);
    const minimum = await server.chat({ messages: says("ab"), min_tokens: 5, max_tokens: 5, return_token_ids: true });
    expect(minimum.choices[0].token_ids).not.toContain(EOS);
    expect(minimum.choices[0].finish_reason).toBe("length");
    const repeating = await server.chat({
      messages: says("abcabcabcabc"),
      repetition_detection: { max_pattern_size: 3, min_pattern_size: 2, min_count: 3 },
    });
    expect(repeating.choices[0]).toMatchObject({
      finish_reason: "repetition",
      stop_reason: "repetition_detected",
      message: { content: "abcabcabc" },
    });
  });

  it("drops an unfinished character and hides special tokens unless asked", async () => {
    const cut = await server.chat({ messages: says("aé"), max_tokens: 2 });
    expect(cut.choices[0].message.content).toBe("a");
    const shown = await server.chat({
      messages: says("ab"),
      skip_special_tokens: false,
      ignore_eos: true,
      max_tokens: 4,
    });
    expect(shown.choices[0].message.content).toBe("ab</s></s>");
  });

  it("applies masks and biases", async () => {
    const only = await server.chat({ ...babble, allowed_token_ids: [97, 98] });
    expect(only.choices[0].message.content).toMatch(/^[ab]{12}$/);
    const biased = await server.chat({ ...babble, logit_bias: { "120": 100 } });
    expect(biased.choices[0].message.content).toBe("x".repeat(12));
    const banned = await server.chat({ messages: says("abc"), bad_words: ["b"], max_tokens: 3 });
    expect(banned.choices[0].message.content).not.toContain("b");
  });
});
