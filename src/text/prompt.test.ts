import { describe, expect, test } from "vitest";
import { ByteTokenizer } from "../../test/support/byte-tokenizer.ts";
import { type ChatInput, chatPrompt, encodeChat, tokenisePrompt } from "./prompt.ts";
import { boundText, fitTokens, type LengthRules, outputBudget } from "./prompt-length.ts";
import { tokeniseBadWords } from "./stop-strings.ts";
import { TextModel } from "./text-model.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";

const template =
  "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}<s>assistant:{% endif %}";
const model = new TextModel({
  tokenizer: new ByteTokenizer(),
  specialTokens: { eos_token: "</s>" },
  chatTemplates: new Map([
    ["default", template],
    ["tool_use", "tools!"],
    ["terse", "{{ messages[0].content }}"],
  ]),
  chatTemplateKwargs: { tone: "server" },
  longestToken: 5,
});
const user = { role: "user", texts: ["hi"] };
const rules = (changes: Partial<LengthRules> = {}): LengthRules => ({
  contextLength: 40,
  maxTokens: null,
  truncatePromptTokens: null,
  ...changes,
});
const bytes = (text: string): number[] => new ByteTokenizer().encode(text);

describe("chats", () => {
  const prompt = (request: Partial<ChatInput>) => chatPrompt(model, { messages: [user], ...request }, null);

  test("a chat is rendered and tokenised, with special tokens recognised", async () => {
    expect(await prompt({})).toEqual({
      tokenIds: [1, ...bytes("user:hi"), 2, 1, ...bytes("assistant:")],
      text: "<s>user:hi</s><s>assistant:",
      replyRole: "assistant",
      echoText: null,
    });
  });

  test("without a generation prompt the reply has the role of the last message, and echo its text", async () => {
    const messages = [{ role: "user", texts: ["a", "b"] }];
    expect(await prompt({ messages, addGenerationPrompt: false })).toMatchObject({
      text: "<s>user:a\nb</s>",
      replyRole: "user",
      echoText: "a\nb",
    });
  });

  test("a final message can be continued", async () => {
    const messages = [user, { role: "assistant", texts: ["Well"] }];
    expect(await prompt({ messages, continueFinalMessage: true, addGenerationPrompt: false })).toMatchObject({
      text: "<s>user:hi</s><s>assistant:Well",
      replyRole: "assistant",
      echoText: "Well",
    });
  });

  test("templates can be chosen by name, for tools, and by a template variable", async () => {
    expect(await prompt({ chatTemplate: "terse" })).toMatchObject({ text: "hi" });
    expect(
      await prompt({ tools: [{ type: "function", function: { name: "f", description: null, parameters: null } }] }),
    ).toMatchObject({ text: "tools!" });
    expect(await prompt({ chatTemplateKwargs: { chat_template: "terse" } })).toMatchObject({ text: "hi" });
  });

  test("the form for trusted callers gives the same ids", async () => {
    expect(await encodeChat(model, { messages: [user] })).toEqual((await prompt({})).tokenIds);
  });

  test("the request's template variables win over the operator's", async () => {
    const toned = new TextModel({
      tokenizer: new ByteTokenizer(),
      specialTokens: {},
      chatTemplates: new Map([["default", "{{ tone }}"]]),
      chatTemplateKwargs: { tone: "server" },
      longestToken: 5,
    });
    expect((await chatPrompt(toned, { messages: [user] }, null)).text).toBe("server");
    expect((await chatPrompt(toned, { messages: [user], chatTemplateKwargs: { tone: "mine" } }, null)).text).toBe(
      "mine",
    );
  });

  test("a model without a template needs one", async () => {
    const bare = new TextModel({
      tokenizer: new ByteTokenizer(),
      specialTokens: {},
      chatTemplates: new Map(),
      longestToken: 5,
    });
    await expect(chatPrompt(bare, { messages: [user] }, null)).rejects.toMatchObject({
      code: "no_chat_template",
      param: null,
      message:
        "This model has no default chat template: send chat_template with the request, start the server with --chat-template, or use /v1/completions.",
    });
  });

  test("an operator's broken template shows at start", () => {
    const parts = { tokenizer: new ByteTokenizer(), specialTokens: {}, chatTemplates: new Map(), longestToken: 5 };
    expect(() => new TextModel({ ...parts, chatTemplate: "{% if %}" })).toThrow(/cannot be parsed/);
  });
});

describe("length", () => {
  const ids = Array.from({ length: 30 }, (_, i) => i);

  test("a prompt that fits is not changed", () => {
    expect(fitTokens(ids, rules())).toEqual(ids);
    expect(fitTokens(ids, rules({ maxTokens: 10 }))).toEqual(ids);
    expect(fitTokens(ids, rules({ truncatePromptTokens: 35 }))).toEqual(ids);
  });

  test.each([
    ["the last tokens", { truncatePromptTokens: 3 }, [27, 28, 29]],
    ["as many as fit beside the output", { truncatePromptTokens: -1, maxTokens: 38 }, [28, 29]],
    ["the first tokens", { truncatePromptTokens: 3, truncationSide: "right" as const }, [0, 1, 2]],
  ])("truncation keeps %s", (_name, changes, expected) => {
    expect(fitTokens(ids, rules(changes))).toEqual(expected);
  });

  test.each([
    ["prompt and output do not fit", { maxTokens: 11 }, "context_length_exceeded", "input_tokens"],
    ["no room for a single token", { contextLength: 30 }, "context_length_exceeded", "input_tokens"],
    [
      "-1 without a requested length fills the context",
      { contextLength: 20, truncatePromptTokens: -1 },
      "context_length_exceeded",
      "input_tokens",
    ],
    ["truncated to nothing", { truncatePromptTokens: 0 }, "empty_prompt", null],
    [
      "truncated to more than there is room for",
      { truncatePromptTokens: 31, maxTokens: 10 },
      "invalid_truncation",
      "truncate_prompt_tokens",
    ],
    [
      "more output than context",
      { maxTokens: 41, maxTokensParam: "max_completion_tokens" },
      "invalid_max_tokens",
      "max_completion_tokens",
    ],
  ])("%s", (_name, changes, code, param) => {
    expect(() => fitTokens(ids, rules(changes))).toThrow(expect.objectContaining({ code, param }));
  });

  test("the error names the numbers", () => {
    expect(() => fitTokens(ids, rules({ maxTokens: 11 }))).toThrow(
      /^This model's maximum context length is 40 tokens\. However, you requested 11 output tokens and .*30 input tokens/,
    );
  });

  test("a text that cannot fit never reaches the tokenizer", async () => {
    const untouched: Tokenizer = Object.assign(new ByteTokenizer(), {
      encodeSteps: () => {
        throw new Error("must not be called");
      },
    });
    const guarded = new TextModel({
      tokenizer: untouched,
      specialTokens: {},
      chatTemplates: new Map(),
      longestToken: 5,
    });
    await expect(tokenisePrompt(guarded, "a".repeat(201), { addSpecialTokens: false }, rules())).rejects.toThrow(
      expect.objectContaining({ code: "context_length_exceeded", param: "input_text" }),
    );
    expect(boundText("a".repeat(200), rules(), 5)).toHaveLength(200);
    // The room counts that the output leaves.
    expect(() => boundText("a", rules({ maxTokens: rules().contextLength }), 5)).toThrow(
      /maximum context length is 40 tokens.*requested 40 output tokens.*1 characters, more than the 0/,
    );
  });

  test("with truncation only the end that can matter is tokenised, in whole characters", () => {
    const text = `${"😀".repeat(2_000)}end`;
    const left = boundText(text, rules({ truncatePromptTokens: 10 }), 5);
    expect(left.length).toBeLessThanOrEqual(520);
    expect(left.endsWith("😀end")).toBe(true);
    expect(left.startsWith("😀")).toBe(true);
    const right = boundText(`start${text}`, rules({ truncatePromptTokens: 10, truncationSide: "right" }), 5);
    expect(right).toHaveLength(520);
    expect(right.startsWith("start😀")).toBe(true);
  });

  test("the output budget is the lesser of what is left and what is wanted", () => {
    const left = { contextLength: 100, promptTokens: 40 };
    expect(outputBudget({ ...left, maxTokens: null })).toBe(60);
    expect(outputBudget({ ...left, maxTokens: 7, defaultMaxTokens: 5 })).toBe(7);
    expect(outputBudget({ ...left, maxTokens: null, defaultMaxTokens: 5 })).toBe(5);
  });
});

test("a long prompt lets other work run while it is tokenised", async () => {
  const slow: Tokenizer = Object.assign(new ByteTokenizer(), {
    *encodeSteps(text: string): Generator<undefined, number[]> {
      for (let i = 0; i < 4; i++) {
        const end = performance.now() + 10;
        while (performance.now() < end);
        yield;
      }
      return bytes(text);
    },
  });
  const paced = new TextModel({ tokenizer: slow, specialTokens: {}, chatTemplates: new Map(), longestToken: 5 });
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  expect(await tokenisePrompt(paced, "abc", { addSpecialTokens: false }, null)).toEqual(bytes("abc"));
  clearInterval(timer);
  expect(turns).toBeGreaterThanOrEqual(3);
});

describe("bad words", () => {
  /** A word and the same word behind a space are one token each, as in most vocabularies. */
  const spaced: Tokenizer = Object.assign(new ByteTokenizer(), {
    encode: (text: string) =>
      text === "cat" ? [300] : text === " cat" ? [301] : text === " cow" ? [302] : [...Buffer.from(text)],
  });

  test("bans a word as given, and behind a space where that takes as many tokens", () => {
    expect(tokeniseBadWords(spaced, ["cat"])).toEqual([[300], [301]]);
    expect(tokeniseBadWords(spaced, ["cow"])).toEqual([bytes("cow")]);
    expect(tokeniseBadWords(spaced, ["  cat"])).toEqual([[300], [301]]);
    expect(tokeniseBadWords(new ByteTokenizer(), ["dog"])).toEqual([bytes("dog")]);
  });

  test.each([
    [["ok", ""], "bad_words.1"],
    [["  "], "bad_words.0"],
    [["a".repeat(1001)], "bad_words.0"],
    [Array.from({ length: 129 }, (_, i) => `w${i}`), "bad_words"],
  ])("%#: refused with the field", (words, param) => {
    expect(() => tokeniseBadWords(spaced, words)).toThrow(
      expect.objectContaining({ code: "invalid_bad_words", param }),
    );
  });
});
