// Long conversations beside live requests: others get their turn in the middle of one, a cancelled job ends there, and
// what is too long to be trained costs little and changes nothing else.

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { toyEncoder, toyIds } from "../../../test/support/toy-encoder.ts";
import type { ChatMessage } from "../../text/messages.ts";
import { RL_DEFAULTS, SFT_DEFAULTS } from "../config.ts";
import { prepareJob } from "./prepare.ts";
import { prepareSft } from "./prepare-sft.ts";
import { tokeniseHistory } from "./tokenise.ts";
import { type ChatEncoder, type HistoryItem, messageOf } from "./trajectory.ts";

const ENCODE_MS = 5;
const user: ChatMessage = { role: "user", texts: ["q1"] };
const assistant: ChatMessage = { role: "assistant", texts: ["a1"] };
const choice = (ids: string): HistoryItem => ({
  choice: {
    message: { role: "assistant", texts: [ids.replaceAll(" <e>", "")] },
    ...{ promptTokenIds: null, tokenIds: toyIds(ids), logprobs: toyIds(ids).map(() => -1), tokens: null },
  },
});
const conversation = (turns: number): ChatMessage[] => Array.from({ length: turns }, () => [user, assistant]).flat();
const dialogue = (turns: number): HistoryItem[] =>
  Array.from({ length: turns }, () => [{ message: user }, choice("a1 <e>")]).flat();

let now = 0;
let turnsOfLoop = 0;
let loop: NodeJS.Immediate;
beforeEach(() => {
  now = 0;
  turnsOfLoop = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const turn = () => {
    turnsOfLoop++;
    loop = setImmediate(turn);
  };
  turn();
});
afterEach(() => {
  clearImmediate(loop);
  vi.restoreAllMocks();
});

/** An encoder that takes its time. `calls`: the turn of the event loop in which each conversation was encoded. */
function slowEncoder() {
  const calls: number[] = [];
  const slowly =
    (encode: ChatEncoder["encodeConversation"]): ChatEncoder["encodeConversation"] =>
    (messages, tools) => {
      now += ENCODE_MS;
      calls.push(turnsOfLoop);
      return encode(messages, tools);
    };
  const encoder: ChatEncoder = {
    ...toyEncoder,
    encodePrompt: slowly((messages, tools) => toyEncoder.encodePrompt(messages, tools, Number.POSITIVE_INFINITY)),
    encodeConversation: slowly(toyEncoder.encodeConversation),
  };
  return { encoder, calls };
}
const mostInOneTurn = (calls: readonly number[]) =>
  Math.max(...calls.map((turn) => calls.filter((other) => other === turn).length));

function rl(items: HistoryItem[], encoder: ChatEncoder, maxSequenceLength: number, signal?: AbortSignal) {
  const trajectory = (reward: number) => ({
    ...{ histories: [{ items, tools: null }], reward, metrics: {} },
    initialPolicyVersion: null,
  });
  return prepareJob([{ trajectories: [trajectory(1), trajectory(0)], exceptions: 0, metrics: {} }], {
    ...{ encoder, config: RL_DEFAULTS, currentStep: 0, preview: false },
    ...{ maxSequenceLength, maxTrainedLength: maxSequenceLength },
    ...(signal ? { signal } : {}),
  });
}
const sft = (messages: ChatMessage[], encoder: ChatEncoder, limit: number, signal?: AbortSignal) =>
  prepareSft(
    [{ messages, tools: null }],
    encoder,
    SFT_DEFAULTS,
    { maxSequenceLength: limit, maxTrainedLength: limit },
    signal,
  );

describe.each([
  ["a trajectory", (...[encoder, signal]: [ChatEncoder, AbortSignal?]) => rl(dialogue(40), encoder, 4096, signal)],
  ["an example", (...[encoder, signal]: [ChatEncoder, AbortSignal?]) => sft(conversation(40), encoder, 4096, signal)],
])("in the middle of %s", (_name, prepare) => {
  it("the event loop keeps running", async () => {
    const { encoder, calls } = slowEncoder();
    await prepare(encoder);
    expect(calls).toHaveLength(80);
    expect(mostInOneTurn(calls)).toBeLessThanOrEqual(2);
  });

  it("several preparations share its time", async () => {
    const { encoder, calls } = slowEncoder();
    await Promise.all([prepare(encoder), prepare(encoder), prepare(encoder)]);
    // all of them begin in the first one
    expect(mostInOneTurn(calls.slice(6))).toBeLessThanOrEqual(2);
  });

  it("a cancelled job ends", async () => {
    const { encoder, calls } = slowEncoder();
    const controller = new AbortController();
    setImmediate(() => setImmediate(() => controller.abort(new Error("cancelled"))));
    await expect(prepare(encoder, controller.signal)).rejects.toThrow("cancelled");
    expect(calls.length).toBeLessThan(10);
  });
});

describe("a conversation that is too long", () => {
  // 11 tokens up to the end of the first reply, 12 more with every other one: 5 turns fit into 64
  const LIMIT = 64;

  it("renders no more prompts the longer it is, and is reported as before", async () => {
    const { encoder, calls } = slowEncoder();
    const { report, sequences } = await rl(dialogue(300), encoder, LIMIT);
    expect(calls.length).toBeLessThanOrEqual(2 * 9);
    expect(sequences).toEqual([]);
    for (const entry of report) {
      expect(entry).toMatchObject({ status: "too_long", sequences: 1 });
      expect(entry.reason).toBe("1 of its 1 sequences are longer than 64 tokens");
    }
  });

  it("adds no turns to examples either", async () => {
    const { encoder, calls } = slowEncoder();
    const { report, sequences } = await sft(conversation(300), encoder, LIMIT);
    expect(calls.length).toBeLessThanOrEqual(2 * 7);
    expect(sequences).toEqual([]);
    expect(report[0]).toMatchObject({ status: "too_long", reason: "longer than 64 tokens", tokens: LIMIT + 1 });
  });

  it("keeps the turns that fit: sampled tokens that differ from the text begin a new sequence each turn", async () => {
    const items = Array.from({ length: 300 }, () => [{ message: user }, choice("a2")]).flat();
    for (const item of items) if ("choice" in item) item.choice.message = assistant;
    const { encoder, calls } = slowEncoder();
    const { report, sequences } = await rl(items, encoder, LIMIT);
    expect(calls.length).toBeLessThanOrEqual(2 * 9);
    expect(sequences).toHaveLength(2 * 5);
    expect(report[0]).toMatchObject({ status: "trained", sequences: 5, trainableTokens: 5 });
    expect(report[0]!.reason).toContain("longer than 64 tokens");
  });

  it("is not too long because of an empty thought that its reply does not have", async () => {
    const items = [{ message: { role: "think", texts: ["q1"] } }, choice("<think> a1 <e>")];
    expect((await rl(items, toyEncoder, 12)).report[0]).toMatchObject({ status: "trained", tokens: 12 });
    expect((await rl(items, toyEncoder, 11)).report[0]!.status).toBe("too_long");
  });

  it("still has every record in it checked", async () => {
    const odd = (fields: object) => {
      const [question, reply] = [{ message: user }, choice("a1 <e>") as { choice: object }];
      return [...dialogue(50), question, { choice: { ...reply.choice, ...fields } }] as HistoryItem[];
    };
    await expect(rl(odd({ logprobs: [-1] }), toyEncoder, LIMIT)).rejects.toThrow(/messages_and_choices\[101\]/);
    const { report } = await rl(odd({ tokenIds: [99], logprobs: [-1] }), toyEncoder, LIMIT);
    expect(report[0]!.status).toBe("token_mismatch");
    const unknown = await rl(odd({ tokenIds: null, tokens: ["a1 a2"], logprobs: [-1] }), toyEncoder, LIMIT);
    expect(unknown.metrics.num_retokenised).toBe(2);
  });
});

describe("templates that rewrite earlier messages", () => {
  /** In `name`: reasoning would be written as a thought of its own. */
  const thought = (message: ChatMessage) => message.name ?? "";
  const render = (messages: readonly ChatMessage[], keeps: (index: number) => boolean) => {
    const texts = messages.map((message, i) => {
      const text = `${keeps(i) ? thought(message) : ""} ${message.texts.join(" ")}`;
      return `<s> ${message.role === "assistant" ? "assistant" : "user"} NL ${text} <e> NL`;
    });
    return toyIds(texts.join(" "));
  };
  const lastUser = (messages: readonly ChatMessage[]) => messages.findLastIndex(({ role }) => role === "user");
  const templates: Record<string, (messages: readonly ChatMessage[]) => number[]> = {
    "keep everything": (messages) => render(messages, () => true),
    "keep no thoughts": (messages) => render(messages, () => false),
    "forget thoughts before the last question": (messages) => render(messages, (i) => i > lastUser(messages)),
    "forget thoughts when a question comes": (messages) => render(messages, () => messages.at(-1)?.role !== "user"),
    "remember the last four messages": (messages) => render(messages.slice(-4), () => true),
  };
  const item = fc.record({
    kind: fc.constantFrom("user", "tool", "choice", "choice"),
    content: fc.constantFrom("a1", "a2 a3", "yes no maybe"),
    thought: fc.constantFrom("", "q2", "q2 ".repeat(30)),
    /** Sampled as the template has it, or not. */
    faithful: fc.boolean(),
  });

  it.each(Object.keys(templates))("%s: what fits is what it would be without a limit", async (name) => {
    const encodeConversation = templates[name]!;
    const prompt = (messages: readonly ChatMessage[]) => [
      ...encodeConversation(messages),
      ...toyIds("<s> assistant NL"),
    ];
    const encoder = (cut: boolean): ChatEncoder => ({
      ...toyEncoder,
      encodeConversation,
      encodePrompt: (messages, _tools, maxTokens) => prompt(messages).slice(0, cut ? maxTokens + 1 : undefined),
    });
    const property = fc.asyncProperty(
      fc.array(item, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 40, max: 160 }),
      fc.boolean(),
      async (drawn, limit, cut) => {
        const items = drawn.map(({ kind, content, thought, faithful }): HistoryItem => {
          if (kind !== "choice") return { message: { role: kind, texts: [content] } };
          const sampled = choice(`${faithful ? thought : "q1"} ${content} <e>`) as { choice: { message: ChatMessage } };
          sampled.choice.message = { role: "assistant", texts: [content], name: thought };
          return sampled as HistoryItem;
        });
        const tokenise = async (maxTokens: number) => {
          const options = { allowWithoutLogprobs: false, maxTokens, giveWay: async () => {} };
          return (await tokeniseHistory({ items, tools: null }, encoder(cut), options)).sequences;
        };
        const fits = ({ ids }: { ids: number[] }) => ids.length <= limit;
        const [bounded, whole] = [await tokenise(limit), await tokenise(Number.POSITIVE_INFINITY)];
        expect(bounded.filter(fits)).toEqual(whole.filter(fits));
        expect(bounded.every(fits)).toBe(whole.every(fits));
        const messages = items.map(messageOf);
        const examples = [await sft(messages, encoder(cut), limit), await sft(messages, encoder(cut), 1e6)];
        expect(examples[0]!.sequences).toEqual(examples[1]!.sequences.filter(fits));
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });
});
