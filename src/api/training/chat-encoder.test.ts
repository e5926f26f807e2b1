import { beforeAll, describe, expect, it } from "vitest";
import { loadTextModel } from "../../text/text-model.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { RL_DEFAULTS, SFT_DEFAULTS } from "../../training/config.ts";
import { prepareJob } from "../../training/data/prepare.ts";
import { prepareSft } from "../../training/data/prepare-sft.ts";
import { tokeniseHistory } from "../../training/data/tokenise.ts";
import type { ChatEncoder, HistoryMessage } from "../../training/data/trajectory.ts";
import { chatTools, type WireMessage, type WireTool } from "../generation/messages.ts";
import { chatEncoder } from "./chat-encoder.ts";
import { JsonItems } from "./json-stream.ts";
import { historyMessage } from "./trajectory.wire.ts";

/** More than the tokenizer has, as where a vocabulary was padded. */
const MODEL_ROWS = 8200;

const MINI = new URL("../../../models/flywheel-mini", import.meta.url).pathname;

let tokenizer: Tokenizer;
let encoder: ChatEncoder;
beforeAll(async () => {
  const text = await loadTextModel(MINI);
  tokenizer = text.tokenizer;
  encoder = chatEncoder(text, MODEL_ROWS);
});

const utf8 = (text: string) => [...Buffer.from(text)];

describe("the token of a log-probability entry", () => {
  it.each([..."éüöäñßÄ£°¡½Ġ"])("%s is the token that decodes to it, not the byte with that spelling", (char) => {
    const ids = tokenizer.encode(char);
    const expected = ids.length === 1 ? ids[0] : null;
    expect(encoder.idOf(char, utf8(char))).toBe(expected);
    expect(encoder.idOf(char)).toBe(char === "Ġ" ? (expected ?? tokenizer.idOf("Ġ")) : expected);
  });

  it("is found by its bytes, even for part of a character", () => {
    const [first, second] = utf8("é");
    expect(tokenizer.bytes(encoder.idOf("", [first!])!)).toEqual(Uint8Array.of(first!));
    expect(tokenizer.bytes(encoder.idOf("é", [second!])!)).toEqual(Uint8Array.of(second!));
    expect(encoder.idOf("a", utf8("no such token"))).toBeNull();
  });

  it("falls back to the vocabulary's spelling when no token decodes to the text", () => {
    const the = tokenizer.encode(" the")[0]!;
    expect(encoder.idOf(" the")).toBe(the);
    expect(encoder.idOf("Ġthe")).toBe(the);
    expect(encoder.idOf("<|im_end|>")).toBe(tokenizer.eosTokenId);
    expect(encoder.idOf("<|im_end|>", utf8("<|im_end|>"))).toBe(tokenizer.eosTokenId);
  });

  it("is unknown when a server lost the bytes of a split character", () => {
    expect(encoder.idOf("\uFFFD")).toBeNull();
    expect(encoder.idOf("\uFFFD", utf8("\uFFFD"))).toBeNull();
    expect(tokenizer.bytes(encoder.idOf("\uFFFD", [0xc3])!)).toEqual(Uint8Array.of(0xc3));
  });
});

it("recovers a reply's sampled ids from texts and bytes alone", async () => {
  const replies = ["café", "résumé °C ½", "日本語 🙂 ok", " leading\n\nlines"].map((text) => tokenizer.encode(text));
  // an é that was sampled byte by byte, though a token for it exists
  replies.push([tokenizer.idOfBytes([0xc3])!, tokenizer.idOfBytes([0xa9])!]);
  for (const reply of replies) {
    const ids = [...reply, tokenizer.eosTokenId!];
    const walk = new TokenTextWalk(tokenizer);
    const entries = ids.map((id) => walk.advance(id));
    const choice = {
      message: { role: "assistant", texts: ["ignored"] },
      ...{ promptTokenIds: [1], tokenIds: null, logprobs: ids.map(() => -1) },
      ...{ tokens: entries.map(({ token }) => token), bytes: entries.map(({ bytes }) => bytes) },
    };
    const history = { items: [{ choice }], tools: null };
    const options = { allowWithoutLogprobs: false, maxTokens: 1000, giveWay: async () => {} };
    const { sequences, retokenised } = await tokeniseHistory(history, encoder, options);
    expect(sequences[0]!.ids.slice(1)).toEqual(ids);
    expect(retokenised).toBe(0);
  }
});

it.each([
  ["without tools", null],
  ["with tools", [{ type: "function" as const, function: { name: "look_up", description: null, parameters: {} } }]],
])(
  "trains only the reply, not the template's text, when a conversation begins with a reply (%s)",
  async (_what, tools) => {
    const messages = [{ role: "assistant", texts: ["Hello, how can I help?"] }];
    const limits = { maxSequenceLength: 512, maxTrainedLength: 512 };
    const { sequences } = await prepareSft([{ messages, tools }], encoder, SFT_DEFAULTS, limits);
    const { ids, mask } = sequences[0]!;
    expect(ids).toEqual((await encoder.encodeConversation(messages, tools)).slice(0, ids.length));
    const trained = ids.filter((_, i) => mask[i] === 1);
    expect(trained).toEqual([...(await encoder.encodeText("Hello, how can I help?")), tokenizer.eosTokenId]);
  },
);

describe("an example's thought is trained as the template writes it", () => {
  const question = { role: "user", texts: ["2+2?"] };
  const thought = "<think>\ntwo and two\n</think>\n\n";
  const call = { type: "function", function: { name: "add", arguments: { a: 2, b: 2 } } };
  const written = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 2}}\n</tool_call>';

  it.each([
    ["from its own field", { content: "4", reasoning: "two and two" }, `${thought}4`],
    ["from the field's older name", { content: "4", reasoning_content: "two and two" }, `${thought}4`],
    ["from its text", { content: `${thought}4` }, `${thought}4`],
    ["from its text, with other whitespace", { content: "<think>two and two</think>4" }, `${thought}4`],
    ["before a call", { content: "", reasoning: "two and two", tool_calls: [call] }, thought + written],
  ])("%s", async (_what, reply, expected) => {
    const messages = [question, historyMessage({ role: "assistant", ...reply })];
    const limits = { maxSequenceLength: 512, maxTrainedLength: 512 };
    const { sequences } = await prepareSft([{ messages, tools: null }], encoder, SFT_DEFAULTS, limits);
    const { ids, mask } = sequences[0]!;
    expect(tokenizer.decode(ids.filter((_, i) => mask[i] === 1))).toBe(`${expected}<|im_end|>`);
    expect(ids).toEqual((await encoder.encodeConversation(messages, null)).slice(0, ids.length));
  });

  it.each([
    ["its text", { content: `${thought}4` }],
    ["its own field", { content: "4", reasoning: "two and two" }],
  ])("from %s, when the prompt opens the thought and the template drops closed thoughts", async (_what, reply) => {
    const template =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}" +
      "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}";
    const opening = await loadTextModel(MINI, { chatTemplate: template });
    const messages = [question, historyMessage({ role: "assistant", ...reply })];
    const limits = { maxSequenceLength: 512, maxTrainedLength: 512 };
    const opener = chatEncoder(opening, tokenizer.vocabSize);
    const { sequences } = await prepareSft([{ messages, tools: null }], opener, SFT_DEFAULTS, limits);
    const { ids, mask } = sequences[0]!;
    expect(tokenizer.decode(ids.filter((_, i) => mask[i] === 0))).toMatch(/assistant\n<think>\n$/);
    expect(tokenizer.decode(ids.filter((_, i) => mask[i] === 1))).toBe("two and two\n</think>\n\n4<|im_end|>");
    opening.close();
  });

  it.each(["4", "<think>\n\n</think>\n\n4"])(
    "keeps the empty thought outside the trained part: %j",
    async (content) => {
      const messages = [question, { role: "assistant", texts: [content] }];
      const limits = { maxSequenceLength: 512, maxTrainedLength: 512 };
      const { sequences } = await prepareSft([{ messages, tools: null }], encoder, SFT_DEFAULTS, limits);
      const { ids, mask } = sequences[0]!;
      expect(tokenizer.decode(ids.filter((_, i) => mask[i] === 1))).toBe("4<|im_end|>");
      expect(tokenizer.decode(ids)).toContain("<think>\n\n</think>\n\n4");
    },
  );
});

it("accepts every id of the model, even beyond the tokenizer's", async () => {
  const trained = async (id: number) => {
    const choice = {
      message: { role: "assistant", texts: [] },
      ...{ promptTokenIds: [1], tokenIds: [id], logprobs: [-1], tokens: null },
    };
    const options = { allowWithoutLogprobs: false, maxTokens: 1000, giveWay: async () => {} };
    return (await tokeniseHistory({ items: [{ choice }], tools: null }, encoder, options)).sequences[0]!.ids;
  };
  expect(tokenizer.vocabSize).toBeLessThan(MODEL_ROWS);
  expect(await trained(MODEL_ROWS - 1)).toEqual([1, MODEL_ROWS - 1]);
  await expect(trained(MODEL_ROWS)).rejects.toThrow(/outside the vocabulary \(0 to 8199\)/);
});

it("prints numbers in tools and calls as written, as requests do", async () => {
  const body = `{"training_data": [{
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"enum": [1.0, 2e0]}}}}}],
    "messages": [{"role": "assistant", "content": "", "tool_calls": [
      {"function": {"name": "f", "arguments": {"n": 1.0, "id": 12345678901234567890}}}
    ]}],
    "reward": 1.0
  }]}`;
  const [item] = new JsonItems({ training_data: null }).push(Buffer.from(body));
  const { tools, messages, reward } = item!.value as {
    tools: WireTool[];
    messages: WireMessage[];
    reward: unknown;
  };
  const read = messages.map((message) => historyMessage({ ...message }));
  const text = tokenizer.decode(await encoder.encodeConversation(read, chatTools(tools)));
  expect(text).toContain("f(n?: 1.0 | 2.0)");
  expect(text).toContain('"arguments": {"n": 1.0, "id": 12345678901234567890}');
  expect(reward).toBe(1);
});

describe("leaves out a conversation with a message that chat refuses, and names the place", () => {
  const call = { id: "a", type: "function", function: { name: "f", arguments: "{not json" } };
  const content = (value: unknown) => ({ role: "user", content: value });

  it.each([
    [
      "arguments",
      { role: "assistant", content: "", tool_calls: [call] },
      /^messages_and_choices\[0\]\.tool_calls\.0\.function\.arguments: Arguments are not valid JSON/,
    ],
    [
      "an image",
      content([{ type: "image_url", image_url: { url: "data:,x" } }]),
      /^messages_and_choices\[0\]\.content\.0\.type: .*text only/,
    ],
    ["a number", content([5]), /^messages_and_choices\[0\]\.content\.0: /],
  ])("%s", async (_what, refused, reason) => {
    const choice = {
      message: { role: "assistant", texts: ["ok"] },
      ...{ promptTokenIds: null, tokenIds: [5], logprobs: [-1], tokens: null },
    };
    const trajectory = (message: HistoryMessage, reward: number) => ({
      histories: [{ items: [{ message }, { choice }], tools: null }],
      ...{ reward, initialPolicyVersion: null, metrics: {} },
    });
    const trajectories = [trajectory(historyMessage(refused), 1), trajectory({ role: "user", texts: ["x"] }, 0)];
    const job = await prepareJob([{ trajectories, exceptions: 0, metrics: {} }], {
      ...{ encoder, config: RL_DEFAULTS, currentStep: 0, preview: false },
      ...{ maxSequenceLength: 512, maxTrainedLength: 512 },
    });
    expect(job.report.map(({ status }) => status)).toEqual(["unrenderable", "trained"]);
    expect(job.report[0]!.reason).toMatch(reason);
  });
});
