import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteTokenizer } from "../../test/support/byte-tokenizer.ts";
import { OutputText, type OutputTextOptions } from "./output-text.ts";
import { StopStrings } from "./stop-strings.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";
import { encodeUtf8 } from "./utf8.ts";

/** Ids are positions in a list of token texts (or raw bytes); texts in angle brackets are special. */
function listTokenizer(tokens: readonly (string | readonly number[])[]): Tokenizer {
  const bytes = tokens.map((token) => (typeof token === "string" ? encodeUtf8(token) : Uint8Array.from(token)));
  const special = tokens.map((token) => typeof token === "string" && /^<.*>$/.test(token));
  return {
    vocabSize: tokens.length,
    eosTokenId: null,
    kind: "byte_level",
    encode: () => {
      throw new Error("not needed");
    },
    encodeSteps: () => {
      throw new Error("not needed");
    },
    decode: () => {
      throw new Error("not needed");
    },
    decodeSteps: () => {
      throw new Error("not needed");
    },
    piece: (id) => String(tokens[id]),
    bytes: (id) => bytes[id] ?? new Uint8Array(0),
    idOf: (piece) => tokens.indexOf(piece),
    idOfBytes: () => {
      throw new Error("not needed");
    },
    isSpecial: (id) => special[id] ?? false,
  };
}

const defaults: OutputTextOptions = {
  promptTokenIds: [],
  stops: [],
  includeStop: false,
  minTokens: 0,
  skipSpecialTokens: true,
};

interface Run {
  deltas: string[];
  text: string;
  matched: string | null;
}

/** Pushes every token; the last delta includes what `finish` releases, as a finish chunk does. */
function run(tokens: readonly (string | readonly number[])[], options: Partial<OutputTextOptions> = {}): Run {
  const output = new OutputText(listTokenizer(tokens), { ...defaults, ...options });
  const deltas: string[] = [];
  let matched: string | null = null;
  for (let id = 0; id < tokens.length && matched === null; id++) {
    const step = output.push(id);
    deltas.push(step.delta);
    matched = step.matched;
  }
  deltas[deltas.length - 1] += output.finish();
  return { deltas, text: deltas.join(""), matched };
}

describe("deltas with stop strings", () => {
  test.each([
    { tokens: ["a", "bS", "T", "OPc"], stops: ["STOP"], deltas: ["", "", "a", "b"], matched: "STOP" },
    { tokens: ["a", "bS", "TO", "xx", "d"], stops: ["STOP"], deltas: ["", "", "ab", "ST", "Oxxd"], matched: null },
    { tokens: ["He", "llo", " wor", "ld."], stops: ["."], deltas: ["He", "llo", " wor", "ld"], matched: "." },
    { tokens: ["xab"], stops: ["ab", "b"], deltas: ["x"], matched: "ab" },
    { tokens: ["xab"], stops: ["b", "ab"], deltas: ["xa"], matched: "b" },
    { tokens: ["xabcd"], stops: ["abcd", "bc"], deltas: ["xa"], matched: "bc" },
    { tokens: ["a"], stops: ["a", "a"], deltas: [""], matched: "a" },
  ])("$tokens until $stops", ({ tokens, stops, deltas, matched }) => {
    const result = run(tokens, { stops });
    expect(result.deltas).toEqual(deltas);
    expect(result.matched).toBe(matched);
  });

  test("include mode shows everything at once and cuts after the match", () => {
    const result = run(["a", "bS", "T", "OPc"], { stops: ["STOP"], includeStop: true });
    expect(result).toMatchObject({ deltas: ["a", "bS", "T", "OP"], text: "abSTOP", matched: "STOP" });
  });

  test("the hold-back counts characters, not UTF-16 units, and never splits one", () => {
    const result = run(["😀", "😃", "😄", "😁"], { stops: ["xyz"] });
    expect(result.deltas).toEqual(["", "", "😀", "😃😄😁"]);
  });

  test("half of a surrogate pair as a stop string matches nothing", () => {
    expect(run(["a😀b"], { stops: ["\ud83d"] })).toMatchObject({ text: "a😀b", matched: null });
  });

  test("nothing is added after a match", () => {
    const output = new OutputText(listTokenizer(["a.", "b"]), { ...defaults, stops: ["."] });
    expect(output.push(0)).toMatchObject({ delta: "a", matched: "." });
    expect(output.push(1)).toMatchObject({ delta: "", matched: "." });
    expect(output.finish()).toBe("");
  });
});

describe("minTokens", () => {
  test.each([
    { tokens: ["S", "TOP", "x", "STOP"], minTokens: 3, text: "STOPx", matched: "STOP" },
    { tokens: ["x", "ST", "OP", "y"], minTokens: 2, text: "x", matched: "STOP" },
    { tokens: ["x", "ST", "OP", "y"], minTokens: 3, text: "xSTOPy", matched: null },
    { tokens: ["STOP"], minTokens: 1, text: "STOP", matched: null },
  ])("$tokens with $minTokens protected tokens", ({ tokens, minTokens, text, matched }) => {
    expect(run(tokens, { stops: ["STOP"], minTokens })).toMatchObject({ text, matched });
  });
});

describe("stop tokens and special tokens", () => {
  test("the text of a stop token is left out, even of an ordinary word", () => {
    const output = new OutputText(listTokenizer(["Hi", " there"]), defaults);
    expect(output.push(0).delta).toBe("Hi");
    expect(output.push(1, { isStopToken: true })).toMatchObject({ delta: "", matched: null });
    expect(output.finish()).toBe("");
  });

  test("include mode keeps it", () => {
    const output = new OutputText(listTokenizer(["Hi", " there"]), { ...defaults, includeStop: true });
    expect(output.push(0).delta + output.push(1, { isStopToken: true }).delta).toBe("Hi there");
  });

  test("include mode still hides a special stop token when specials are hidden", () => {
    const tokens = listTokenizer(["Hi", "<end>"]);
    const hidden = new OutputText(tokens, { ...defaults, includeStop: true });
    expect(hidden.push(0).delta + hidden.push(1, { isStopToken: true }).delta).toBe("Hi");
    const shown = new OutputText(tokens, { ...defaults, includeStop: true, skipSpecialTokens: false });
    expect(shown.push(0).delta + shown.push(1, { isStopToken: true }).delta).toBe("Hi<end>");
  });

  test("stop strings are looked for after hidden tokens were taken out", () => {
    expect(run(["a<", "<x>", ">b"], { stops: ["<x>"] })).toMatchObject({ text: "a<>b", matched: null });
    expect(run(["a<", "<x>", ">b"], { stops: ["<>"] })).toMatchObject({ text: "a", matched: "<>" });
    const shown = run(["a", "<x>", "b"], { stops: ["<x>"], skipSpecialTokens: false });
    expect(shown).toMatchObject({ text: "a", matched: "<x>" });
  });
});

describe("characters cut by tokens", () => {
  test("bytes are withheld until the character is complete and dropped at the end", () => {
    const bytes = [...encodeUtf8("é中")];
    expect(run(bytes.map((byte) => [byte])).deltas).toEqual(["", "é", "", "", "中"]);
    expect(run(bytes.slice(0, -1).map((byte) => [byte])).text).toBe("é");
  });

  test("bytes that cannot become a character are shown as U+FFFD once text follows them", () => {
    expect(run([[0xe4], "a", [0xff], "b", [0xff]]).deltas).toEqual(["", "\ufffda", "", "\ufffdb", ""]);
  });

  test("a character the prompt began is finished by the first token", () => {
    const tokenizer = new ByteTokenizer();
    const bytes = [...encodeUtf8("a中")];
    const output = new OutputText(tokenizer, { ...defaults, promptTokenIds: bytes.slice(0, -1) });
    expect(output.push(bytes.at(-1)!).delta).toBe("中");
  });
});

test("any text, any split, any stops: the deltas add up to the whole text cut at the first completed stop", () => {
  const letters = fc.constantFrom("a", "b", "c", "é", "中", "😀");
  const texts = fc.array(letters, { minLength: 1, maxLength: 30 }).map((chars) => chars.join(""));
  const stops = fc.array(
    fc.array(letters, { minLength: 1, maxLength: 4 }).map((chars) => chars.join("")),
    { maxLength: 4 },
  );
  const cuts = fc.array(fc.nat({ max: 100 }), { maxLength: 20 });
  fc.assert(
    fc.property(texts, stops, cuts, fc.boolean(), (text, stopList, cutList, includeStop) => {
      const bytes = encodeUtf8(text);
      const at = [...new Set([0, ...cutList.filter((cut) => cut < bytes.length), bytes.length])].sort((a, b) => a - b);
      const tokens = at.slice(1).map((end, i) => [...bytes.slice(at[i], end)]);
      const result = run(tokens, { stops: stopList, includeStop });
      expect(result).toMatchObject(expectedCut(text, stopList, includeStop));
      expect(result.deltas.every((delta) => !/[\ud800-\udbff](?![\udc00-\udfff])/.test(delta))).toBe(true);
    }),
    { numRuns: 500 },
  );
});

/** The rule stated naively: the match that ends first wins; on ties the one first in the list. */
function expectedCut(
  text: string,
  stops: readonly string[],
  includeStop: boolean,
): { text: string; matched: string | null } {
  for (let end = 1; end <= text.length; end++) {
    for (const stop of stops) {
      if (!text.slice(0, end).endsWith(stop)) continue;
      return { text: text.slice(0, includeStop ? end : end - stop.length), matched: stop };
    }
  }
  return { text, matched: null };
}

test("any valid UTF-8 as byte tokens comes back exactly", () => {
  const tokenizer = new ByteTokenizer();
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (raw) => {
      const text = [...raw].filter((char) => char > "\x02").join("");
      const output = new OutputText(tokenizer, { ...defaults, promptTokenIds: [1] });
      let streamed = "";
      for (const byte of encodeUtf8(text)) streamed += output.push(byte).delta;
      expect(streamed + output.finish()).toBe(text);
    }),
  );
});

test("stop strings: empty ones and too much of them are refused by name", () => {
  expect(() => new StopStrings(["a", ""])).toThrow(expect.objectContaining({ code: "invalid_stop", param: "stop" }));
  expect(() => new StopStrings(["a".repeat(70_000)])).toThrow(expect.objectContaining({ code: "invalid_stop" }));
});

test("time per token does not grow with the text or the stop strings", () => {
  const stops = Array.from({ length: 60 }, (_, i) => "a".repeat(1000) + i);
  const tokenizer = listTokenizer(["a"]);
  const output = new OutputText(tokenizer, { ...defaults, stops });
  const before = process.cpuUsage();
  let length = 0;
  for (let i = 0; i < 100_000; i++) length += output.push(0).delta.length;
  expect(length + output.finish().length).toBe(100_000);
  expect(process.cpuUsage(before).user).toBeLessThan(5e6);
});
