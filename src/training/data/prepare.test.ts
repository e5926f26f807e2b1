import { describe, expect, it } from "vitest";
import { toyEncoder, toyHistory, toyIds } from "../../../test/support/toy-encoder.ts";
import type { ChatMessage } from "../../text/messages.ts";
import { RL_DEFAULTS, type RlConfig, SFT_DEFAULTS } from "../config.ts";
import { prepareJob } from "./prepare.ts";
import { prepareSft } from "./prepare-sft.ts";
import type { Trajectory, TrajectoryGroup } from "./trajectory.ts";
import { isStale } from "./verdict.ts";

const trajectory = (reply: string, reward: number, fields: Partial<Trajectory> = {}): Trajectory => ({
  histories: [toyHistory(reply)],
  reward,
  initialPolicyVersion: null,
  metrics: {},
  ...fields,
});
const group = (...trajectories: Trajectory[]): TrajectoryGroup => ({ trajectories, exceptions: 0, metrics: {} });
const prepare = (groups: TrajectoryGroup[], config: Partial<RlConfig> = {}, preview = false, maxTrainedLength = 1e6) =>
  prepareJob(groups, {
    encoder: toyEncoder,
    config: { ...RL_DEFAULTS, ...config },
    currentStep: 10,
    ...{ maxSequenceLength: 64, maxTrainedLength },
    preview,
  });

describe("prepareJob", () => {
  it("gives every trajectory a verdict and the trained ones their signal", async () => {
    const job = await prepare(
      [
        group(
          trajectory("a1 <e>", 1),
          trajectory("a1 a2 a3 <e>", 0),
          trajectory("a1", 0.5),
          trajectory("a1", 0, { histories: [toyHistory("a1", { logprobs: null })] }),
          trajectory("a1", 0, { histories: [toyHistory("a1", { tokenIds: [99] })] }),
          trajectory("a1", 1, { initialPolicyVersion: 5 }),
          trajectory(`a1${" a2".repeat(70)}`, 1),
        ),
      ],
      { maxStepsOffPolicy: 4 },
    );
    expect(job.report.map(({ status }) => status)).toEqual([
      "trained",
      "trained",
      "zero_advantage",
      "no_logprobs",
      "token_mismatch",
      "stale",
      "too_long",
    ]);
    expect(job.report[4]!.reason).toContain("messages_and_choices[1]: token id 99 is outside the vocabulary");
    expect(job.report[5]!.reason).toMatch(/^it began at step \d+, too far from step \d+: max_steps_off_policy is 4$/);
    expect(job.report[6]!.reason).toContain("longer than 64 tokens");
    expect(job.report[0]!).toMatchObject({ trainableTokens: 2, tokens: 11, sequences: 1 });
    const signals = job.sequences.toSorted((a, b) => a.trajectory - b.trajectory);
    expect(signals.map(({ advantage, weight }) => [advantage, weight])).toEqual([
      [expect.closeTo(1, 5), expect.closeTo(1.5, 5)],
      [expect.closeTo(-1, 5), expect.closeTo(0.75, 5)],
    ]);
    expect(job.metrics).toMatchObject({ num_dropped_too_long: 1, num_dropped_stale: 1, steps_off_policy: 5 });
  });

  it("takes as many histories as a body can have, even if one of them is too long", async () => {
    const long = toyHistory(Array.from({ length: 70 }, () => "a1").join(" "));
    const histories = [long, ...Array.from({ length: 150_000 }, () => toyHistory("a1 <e>"))];
    const job = await prepare([group(trajectory("a1", 1, { histories }), trajectory("a2 <e>", 0))]);
    expect(job.sequences).toHaveLength(150_001);
  });

  it("histories of a trajectory share its weight", async () => {
    const both = trajectory("a1 <e>", 1, { histories: [toyHistory("a1 <e>"), toyHistory("a2 <e>")] });
    const { sequences } = await prepare([group(both, trajectory("a1", 0))]);
    expect(sequences).toHaveLength(3);
    for (const { trajectory: index, weight, advantage } of sequences) {
      expect(weight).toBeCloseTo(index === 0 ? 0.625 : 2.5, 5);
      expect(advantage).toBeCloseTo(index === 0 ? 1 : -1, 5);
    }
  });

  it("leaves out sequences that do not fit in memory before it normalises", async () => {
    const long = `a1${" a2".repeat(20)}`;
    const both = [toyHistory("a1 <e>"), toyHistory(long)];
    const groups = [group(trajectory(long, 3), trajectory("a1 <e>", 0), trajectory("a1", 2, { histories: both }))];
    const job = await prepare(groups, { scaleRewards: false }, false, 20);
    expect(job.report).toMatchObject([
      { status: "too_long", advantage: 0 },
      { status: "trained", reason: null, advantage: expect.closeTo(-5 / 3, 9) },
      { status: "trained", sequences: 1, tokens: 11, trainableTokens: 2, advantage: expect.closeTo(1 / 3, 9) },
    ]);
    const limit = "longer than 20 tokens, the most that fits the memory for training";
    expect([job.report[0]!.reason, job.report[2]!.reason]).toEqual([
      `1 of its 1 sequences are ${limit}`,
      `1 of its 2 sequences are ${limit}`,
    ]);
    expect(job.metrics.num_dropped_too_long).toBe(1);
    expect(job.sequences.map(({ weight }) => weight)).toEqual([expect.closeTo(1, 9), expect.closeTo(1, 9)]);
  });

  it("a corrupt record fails a job, naming the place, and is a verdict in a preview", async () => {
    const corrupt = trajectory("a1", 1, { histories: [toyHistory("a1 <e>", { logprobs: [-1] })] });
    const groups = [group(trajectory("a1", 0)), group(trajectory("a1", 0), corrupt)];
    await expect(prepare(groups)).rejects.toThrow(/group 1, trajectory 1, messages_and_choices\[1\]/);
    const preview = await prepare(groups, {}, true);
    expect(preview.report[2]!.status).toBe("token_mismatch");
    expect(preview.tokenised[0]).toHaveLength(1);
  });

  it("leaves out conversations that the chat template refuses, says where, and trains the rest", async () => {
    const alien = { message: { role: "alien", texts: ["q1"] } };
    const reply = toyHistory("a1 <e>").items[1]!;
    const refused = trajectory("a1", 1, { histories: [{ tools: null, items: [alien, reply] }] });
    const second = trajectory("a1", 1, {
      histories: [toyHistory("a1"), { tools: null, items: [...toyHistory("a1").items, alien, reply] }],
    });
    const groups = [
      group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0)),
      group(refused, second, trajectory("a1", 0)),
    ];
    for (const preview of [false, true]) {
      const job = await prepare(groups, {}, preview);
      const statuses = job.report.map(({ status }) => status);
      expect(statuses).toEqual(["trained", "trained", "unrenderable", "unrenderable", "trained"]);
      expect(job.report[2]!.reason).toBe("messages_and_choices[0].role: There are no aliens.");
      expect(job.report[3]!.reason).toMatch(/^additional_histories\[0\]\.messages_and_choices\[2\]\.role: /);
      expect(job.report[3]).toMatchObject({ sequences: 0, tokens: 0 });
      expect(job.sequences).toHaveLength(3);
      expect(job.metrics.num_dropped_unrenderable).toBe(2);
    }
  });

  it("trains nothing when no token of the job has a log-probability, unless allowed", async () => {
    const cut = (reply: string) => toyHistory(reply, { tokenIds: null, tokens: ["a", "b"], logprobs: [-1, -1] });
    const unknown = () => [
      trajectory("a1", 1, { histories: [cut("a1")] }),
      trajectory("a2", 0, { histories: [cut("a2")] }),
    ];
    for (const preview of [false, true]) {
      const none = await prepare([group(...unknown())], {}, preview);
      expect(none.sequences).toEqual([]);
      expect(none.report).toMatchObject([
        { status: "no_logprobs", advantage: 0 },
        { status: "no_logprobs", advantage: 0 },
      ]);
      expect(none.report[0]!.reason).toContain("allow_training_without_logprobs");
      expect(none.metrics).toMatchObject({ num_dropped_no_logprobs: 2, num_retokenised: 2 });
    }
    expect((await prepare([group(...unknown())], { allowTrainingWithoutLogprobs: true })).sequences).toHaveLength(2);
    // one that has them is enough for the others
    const some = await prepare([group(...unknown()), group(trajectory("a1", 1), trajectory("a2", 0))]);
    expect(some.sequences).toHaveLength(4);
  });

  it("keeps a group together in large gradient steps, in an order that depends only on the seed", async () => {
    const groups = [0, 1, 2].map(() => group(...[0, 1, 0, 1].map((reward) => trajectory("a1", reward))));
    const order = async (config: Partial<RlConfig>) => (await prepare(groups, config)).sequences.map((s) => s.group);
    const together = await order({ gradAccumulationSequences: 4 });
    expect(together.filter((g, i) => g !== together[i - 1])).toHaveLength(3);
    expect(await order({ packedSequenceLength: 64 })).toEqual(together);
    expect(await order({ seed: 1 })).toEqual(await order({ seed: 1 }));
    expect(await order({ seed: 1 })).not.toEqual(await order({ seed: 2 }));
  });

  it("leaves out what is longer than a pack, and names the setting", async () => {
    const groups = [group(trajectory("a1 <e>", 1), trajectory(`a1${" a2".repeat(20)}`, 0))];
    const { report, metrics } = await prepare(groups, { packedSequenceLength: 20 });
    expect(report.map(({ status }) => status)).toEqual(["trained", "too_long"]);
    expect(report[1]!.reason).toBe("1 of its 1 sequences are longer than 20 tokens, the job's packed_sequence_length");
    expect(metrics.num_dropped_too_long).toBe(1);
  });

  it("prepares nothing from nothing", async () => {
    expect((await prepare([])).sequences).toEqual([]);
    expect((await prepare([group()])).sequences).toEqual([]);
  });
});

it("drops only what is older than the limit", () => {
  expect([5, 6, 7, 10, null].map((version) => isStale(version, 10, 4))).toEqual([true, false, false, false, false]);
});

describe("prepareSft", () => {
  const messages = [
    { role: "user", texts: ["q1"] },
    { role: "assistant", texts: ["a1"] },
    { role: "user", texts: ["q2"] },
    { role: "assistant", texts: ["a2"] },
  ];
  const limits = (maxSequenceLength: number, maxTrainedLength = 1e6) => ({ maxSequenceLength, maxTrainedLength });
  const prepareExamples = async (assistantTurns: "all" | "last", allowed = limits(64), encoder = toyEncoder) => {
    const examples = [{ messages, tools: null }];
    const { sequences, report } = await prepareSft(examples, encoder, { ...SFT_DEFAULTS, assistantTurns }, allowed);
    const trained = sequences.map(({ ids, mask }) => ids.filter((_, i) => mask[i] === 1).map(toyEncoder.word));
    return { trained, report };
  };

  it("trains assistant turns with their end token", async () => {
    expect((await prepareExamples("all")).trained).toEqual([["a1", "<e>", "a2", "<e>"]]);
    expect((await prepareExamples("last")).trained).toEqual([["a2", "<e>"]]);
  });

  it("trains tool calls when the template opens a reply in another way than it writes one", async () => {
    const toyPrompt = toyEncoder.encodePrompt;
    const opening: typeof toyEncoder = {
      ...toyEncoder,
      encodePrompt: (history, tools, maxTokens) => [
        ...toyPrompt(history, tools, maxTokens),
        ...toyIds("<think> NL </think> NL"),
      ],
      encodeConversation: (history, tools) => {
        const spelled = history.map((message) => ({
          ...message,
          texts: message.toolCalls ? ["maybe"] : message.texts,
        }));
        return toyEncoder.encodeConversation(spelled, tools);
      },
    };
    const trained = async (reply: ChatMessage) => {
      const examples = [{ messages: [messages[0]!, reply], tools: null }];
      const { sequences } = await prepareSft(examples, opening, SFT_DEFAULTS, limits(64));
      return sequences.map(({ ids, mask }) =>
        ids
          .map((id, i) => (mask[i] === 1 ? toyEncoder.word(id) : ""))
          .join(" ")
          .trim(),
      );
    };
    expect(
      await trained({
        role: "assistant",
        texts: [],
        toolCalls: [{ type: "function", function: { name: "f", arguments: {} } }],
      }),
    ).toEqual(["maybe <e>"]);
    expect(await trained({ role: "assistant", texts: ["a1"] })).toEqual(["a1 <e>"]);
  });

  it("leaves out an example with a token outside the vocabulary", async () => {
    const smaller = { ...toyEncoder, vocabSize: toyIds("maybe")[0]! };
    const reply = (content: string) => [messages[0]!, { role: "assistant", texts: [content] }];
    const examples = [messages, reply("maybe"), reply("a1")].map((list) => ({ messages: list, tools: null }));
    const { sequences, report } = await prepareSft(examples, smaller, SFT_DEFAULTS, limits(64));
    expect(sequences.map(({ example }) => example)).toEqual([0, 2]);
    expect(report[1]).toMatchObject({ status: "unrenderable", tokens: 0 });
    expect(report[1]!.reason).toMatch(/^messages\[1\]: token id 15 is outside the vocabulary/);
  });

  it("trains content parts as the template joins them", async () => {
    const parts = ["a1 ", "NL a2"];
    const toy = toyEncoder.encodeConversation;
    const texts: string[] = [];
    const noting: typeof toyEncoder = {
      ...toyEncoder,
      // writes a reply otherwise than it opens one, so that the text is wanted
      encodePrompt: (history, tools, maxTokens) => [
        ...toyEncoder.encodePrompt(history, tools, maxTokens),
        ...toyIds("<think> NL </think> NL"),
      ],
      encodeConversation: (history, tools) =>
        toy(
          history.map((message) => ({ ...message, texts: message.texts.length > 1 ? ["a1"] : message.texts })),
          tools,
        ),
      encodeText: (text) => {
        texts.push(text);
        return toyIds("a1");
      },
    };
    const example = { messages: [messages[0]!, { role: "assistant", texts: parts }], tools: null };
    await prepareSft([example], noting, SFT_DEFAULTS, limits(64));
    expect(texts).toEqual(["a1 \nNL a2"]);
  });

  it("shows the tokens of an example that is too long", async () => {
    const example = { messages: messages.slice(0, 2), tools: null };
    const { sequences, tokenised, report } = await prepareSft([example], toyEncoder, SFT_DEFAULTS, limits(10));
    expect(sequences).toEqual([]);
    expect(tokenised[0]![0]!.ids.map(toyEncoder.word).join(" ")).toBe("<s> user NL q1 <e> NL <s> assistant NL a1 <e>");
    expect(report[0]).toMatchObject({ status: "too_long", tokens: 11, trainableTokens: 2 });
  });

  it("leaves out what the chat template refuses", async () => {
    const alien = [{ role: "alien", texts: ["q1"] }, messages[1]!];
    const examples = [messages, alien, messages].map((list) => ({ messages: list, tools: null }));
    const { sequences, report } = await prepareSft(examples, toyEncoder, SFT_DEFAULTS, limits(64));
    expect(sequences.map(({ example }) => example)).toEqual([0, 2]);
    const reason = "messages[0].role: There are no aliens.";
    expect(report[1]).toMatchObject({ example: 1, status: "unrenderable", reason, tokens: 0 });
  });

  it("reports what it leaves out", async () => {
    expect((await prepareExamples("all", limits(5))).report[0]).toMatchObject({
      ...{ status: "too_long", reason: "longer than 5 tokens", trainableTokens: 0 },
    });
    expect((await prepareExamples("all", limits(64, 5))).report[0]).toMatchObject({
      status: "too_long",
      reason: "longer than 5 tokens, the most that fits the memory for training",
    });
    const { report } = await prepareSft([{ messages: [], tools: null }], toyEncoder, SFT_DEFAULTS, limits(64));
    expect(report[0]!.status).toBe("no_assistant_turn");
  });

  it("reports that part of an example is left out", async () => {
    // a template that rewrites what came before makes a sequence of every turn
    const encodePrompt: typeof toyEncoder.encodePrompt = (history, tools, maxTokens) => [
      ...toyIds(`a${history.length}`),
      ...toyEncoder.encodePrompt(history, tools, maxTokens),
    ];
    const rewriting = { ...toyEncoder, encodePrompt };
    expect((await prepareExamples("all", limits(14), rewriting)).report[0]).toMatchObject({
      status: "trained",
      reason: "1 of its 2 sequences are longer than 14 tokens",
    });
  });
});
