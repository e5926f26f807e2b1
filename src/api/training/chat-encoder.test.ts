import { beforeAll, describe, expect, it } from "vitest";
import { loadTextModel } from "../../text/text-model.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { type ChatEncoder, tokeniseHistory } from "../../training/tokenise.ts";
import { chatEncoder } from "./chat-encoder.ts";

let tokenizer: Tokenizer;
let encoder: ChatEncoder;
beforeAll(async () => {
  const text = await loadTextModel(new URL("../../../models/flywheel-mini", import.meta.url).pathname);
  tokenizer = text.tokenizer;
  encoder = chatEncoder(text);
});

const utf8 = (text: string) => [...Buffer.from(text)];

describe("the token of a log-probability entry", () => {
  it.each([..."éüöäñßÄ£°¡½Ġ"])("%s is what it decodes to, not the byte the vocabulary spells so", (char) => {
    const ids = tokenizer.encode(char);
    const expected = ids.length === 1 ? ids[0] : null;
    expect(encoder.idOf(char, utf8(char))).toBe(expected);
    expect(encoder.idOf(char)).toBe(char === "Ġ" ? (expected ?? tokenizer.idOf("Ġ")) : expected);
  });

  it("is decided by its bytes: parts of characters too", () => {
    const [first, second] = utf8("é");
    expect(tokenizer.bytes(encoder.idOf("", [first!])!)).toEqual(Uint8Array.of(first!));
    expect(tokenizer.bytes(encoder.idOf("é", [second!])!)).toEqual(Uint8Array.of(second!));
    expect(encoder.idOf("a", utf8("no such token"))).toBeNull();
  });

  it("is read as the vocabulary spells it where no token decodes to the text", () => {
    const the = tokenizer.encode(" the")[0]!;
    expect(encoder.idOf(" the")).toBe(the);
    expect(encoder.idOf("Ġthe")).toBe(the);
    expect(encoder.idOf("<|im_end|>")).toBe(tokenizer.eosTokenId);
    expect(encoder.idOf("<|im_end|>", utf8("<|im_end|>"))).toBe(tokenizer.eosTokenId);
  });

  it("is unknown where a server lost the bytes of a cut character", () => {
    expect(encoder.idOf("\uFFFD")).toBeNull();
    expect(encoder.idOf("\uFFFD", utf8("\uFFFD"))).toBeNull();
    expect(tokenizer.bytes(encoder.idOf("\uFFFD", [0xc3])!)).toEqual(Uint8Array.of(0xc3));
  });
});

it("a reply comes back as the ids it was sampled as, from texts and bytes alone", () => {
  const replies = ["café", "résumé °C ½", "日本語 🙂 ok", " leading\n\nlines"].map((text) => tokenizer.encode(text));
  // an é that was sampled byte by byte, though a token for it exists
  replies.push([tokenizer.idOfBytes([0xc3])!, tokenizer.idOfBytes([0xa9])!]);
  for (const reply of replies) {
    const ids = [...reply, tokenizer.eosTokenId!];
    const walk = new TokenTextWalk(tokenizer);
    const entries = ids.map((id) => walk.advance(id));
    const choice = {
      message: { role: "assistant", content: "ignored" },
      ...{ promptTokenIds: [1], tokenIds: null, logprobs: ids.map(() => -1) },
      ...{ tokens: entries.map(({ token }) => token), bytes: entries.map(({ bytes }) => bytes) },
    };
    const history = { items: [{ choice }], tools: null };
    const { sequences, retokenised } = tokeniseHistory(history, encoder, { allowWithoutLogprobs: false });
    expect(sequences[0]!.ids.slice(1)).toEqual(ids);
    expect(retokenised).toBe(0);
  }
});
