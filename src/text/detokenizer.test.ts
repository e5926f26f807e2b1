import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Detokenizer } from "./detokenizer.ts";
import { HfTokenizer } from "./hf-tokenizer.ts";

function load(name: string): HfTokenizer {
  const tokenizer = JSON.parse(
    readFileSync(new URL(`../../test/fixtures/tokenizers/${name}.json`, import.meta.url), "utf8"),
  );
  const files = {
    tokenizerConfig: {},
    specialTokensMap: {},
    modelConfig: {},
    generationConfig: {},
    chatTemplates: new Map(),
  };
  return new HfTokenizer({ tokenizer, ...files });
}

const llama = load("llama-style");
const the = llama.idOf("▁the")!;
const begin = llama.idOf("<s>")!;

test("a leading space belongs to the answer when text precedes it", () => {
  const after = (promptTokenIds: number[], skipSpecialTokens: boolean): string =>
    new Detokenizer(llama, { promptTokenIds, skipSpecialTokens }).push(the);
  expect(after([begin, the], true)).toBe(" the");
  expect(after([begin], true)).toBe("the");
  expect(after([begin], false)).toBe(" the");
  expect(after([], true)).toBe("the");
});

test("only the first space of the whole text is stripped", () => {
  const detokenizer = new Detokenizer(llama, { promptTokenIds: [] });
  expect([the, the].map((id) => detokenizer.push(id))).toEqual(["the", " the"]);
});

test("byte-fallback tokens build characters", () => {
  const detokenizer = new Detokenizer(llama, { promptTokenIds: [the] });
  const bytes = ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"].map((piece) => llama.idOf(piece)!);
  expect(bytes.map((id) => detokenizer.push(id))).toEqual(["", "", "", "😀"]);
  expect(detokenizer.push(bytes[0]!)).toBe("");
  expect(detokenizer.incomplete()).toBe("\ufffd");
});

test("a byte that nothing completes is shown once text follows, and dropped at the end", () => {
  const detokenizer = new Detokenizer(llama, { promptTokenIds: [the] });
  const stray = llama.idOf("<0x96>")!;
  expect([stray, stray, the, stray].map((id) => detokenizer.push(id))).toEqual(["", "", "\ufffd\ufffd the", ""]);
  expect(detokenizer.incomplete()).toBe("\ufffd");
});

test("a hidden special token does not cut a character in two", () => {
  const detokenizer = new Detokenizer(llama, { promptTokenIds: [the], skipSpecialTokens: true });
  const [first, second] = ["<0xC3>", "<0xA9>"].map((piece) => llama.idOf(piece)!);
  expect(detokenizer.push(first!) + detokenizer.push(begin) + detokenizer.push(second!)).toBe("é");
});

test("ids without a token add nothing", () => {
  const detokenizer = new Detokenizer(llama, { promptTokenIds: [the] });
  expect(detokenizer.push(llama.vocabSize + 7) + detokenizer.push(the)).toBe(" the");
});

test.each(["gpt2-style", "split-style", "llama-style", "gemma-style", "metaspace-style"])(
  "%s: any ids decoded one by one, in two halves, equal the whole",
  (name) => {
    const tokenizer = load(name);
    const ids = fc.array(fc.nat({ max: tokenizer.vocabSize - 1 }), { maxLength: 40 });
    fc.assert(
      fc.property(ids, fc.nat({ max: 40 }), fc.boolean(), (tokens, cut, skipSpecialTokens) => {
        const prompt = tokens.slice(0, cut);
        const streamed = (after: readonly number[], promptTokenIds: readonly number[] = []): string => {
          const detokenizer = new Detokenizer(tokenizer, { promptTokenIds, skipSpecialTokens });
          return after.map((id) => detokenizer.push(id)).join("") + detokenizer.incomplete();
        };
        const text = streamed(tokens.slice(cut), prompt);
        const whole = streamed(tokens);
        const before = streamed(prompt);
        // What is no text can look different in a stream, which shows the characters before it at once.
        if (!whole.includes("\ufffd")) expect(tokenizer.decode(tokens, { skipSpecialTokens })).toBe(whole);
        // A character begun in the prompt is shown whole by the second half: the prompt alone shows U+FFFD for it.
        if (before.endsWith("\ufffd")) expect(whole.endsWith(text)).toBe(true);
        else expect(before + text).toBe(whole);
      }),
    );
  },
);
