// What the caller of a fleet sees when replicas die: nothing, wherever a choice can go on elsewhere.
import { describe, expect, it } from "vitest";
import { FakeReplica, type FakeReplicaOptions } from "../../../test/support/fake-replica.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "../../../test/support/requests.ts";
import { outputsOf, startFleet } from "../../../test/support/start-fleet.ts";
import type { EngineOutput, GenerateRequest } from "../contract.ts";

const prompt = Array.from({ length: 21 }, (_, i) => 3 + ((i * 7) % 200));
const greedy = (sampling = {}, rest = {}) => generateRequest(prompt, { maxTokens: 12, logprobs: 2, ...sampling }, rest);

async function run(request: GenerateRequest, ...options: FakeReplicaOptions[]): Promise<EngineOutput[]> {
  const { engine } = await startFleet(options.map((each, i) => new FakeReplica(`r${i}`, each)));
  const outputs = await outputsOf(engine.generate(request));
  expect(engine.replicas().map(({ inFlight }) => inFlight)).toEqual(options.map(() => 0));
  expect(engine.stats().waiting).toBe(0);
  await engine.close();
  return outputs;
}

/** The choices' tokens with their log-probabilities, and their ends. */
function told(outputs: readonly EngineOutput[], n = 1) {
  expect(outputs.filter(({ type }) => type === "prefill")).toHaveLength(1);
  return Array.from({ length: n }, (_, index) => ({
    tokens: outputs.flatMap((output) => (output.type === "tokens" && output.index === index ? output.tokens : [])),
    finish: finishOf(outputs, index),
  }));
}

describe("a replica that loses streams", () => {
  const two = (cut: FakeReplicaOptions["cut"]) => [{ cut: cut! }, { cut: cut! }];

  it.each([1, 2, 3, 5, 11, 12])("is invisible when a stream breaks after every %i tokens", async (k) => {
    const undisturbed = await run(greedy(), {});
    const outputs = await run(greedy(), ...two((tokens) => tokens >= k));
    expect(told(outputs)).toEqual(told(undisturbed));
    expect(prefillOf(outputs)).toMatchObject({ cachedTokens: 0 });
  });

  it("is invisible to several choices that break at different places", async () => {
    const request = greedy({ minTokens: 4 }, { n: 3 });
    const undisturbed = await run(request, {});
    let count = 0;
    const outputs = await run(request, ...two((tokens) => tokens > 0 && ++count % 4 === 0));
    expect(told(outputs, 3)).toEqual(told(undisturbed, 3));
  });

  it.each<[string, Parameters<typeof greedy>]>([
    ["a repetition penalty", [{ repetitionPenalty: 1.7 }]],
    ["forbidden, allowed and biased ids", [{ logitBias: [[9, 3]], allowedTokenIds: [9, 10, 11, 12, 13] }]],
    ["bad words of one token", [{ badWords: [[9], [77]] }]],
    ["a seed without temperature", [{ seed: 5n }]],
    [
      "a least number of tokens and stop ids",
      [{ minTokens: 6, stopTokenIds: [1, 4, 6, 8, 9, 10], minTokensMask: [1, 4, 6] }],
    ],
    ["log-probabilities of the prompt", [{ promptLogprobs: 1 }]],
  ])("is invisible with %s", async (_, args) => {
    const undisturbed = await run(greedy(...args), {});
    const outputs = await run(greedy(...args), ...two((tokens) => tokens >= 3));
    expect(told(outputs)).toEqual(told(undisturbed));
    expect(prefillOf(outputs).promptLogprobs).toEqual(prefillOf(undisturbed).promptLogprobs);
  });

  const exact: [string, Parameters<typeof greedy>][] = [
    ["a constraint", [{}, { grammar: JSON.stringify([7, 8].flatMap((a) => [7, 8].map((b) => [a, b]))) }]],
    ["a frequency penalty", [{ frequencyPenalty: 1 }]],
    ["a presence penalty", [{ presencePenalty: 1 }]],
    ["repetition detection", [{ repetitionDetection: { maxPatternSize: 4, minPatternSize: 1, minCount: 3 } }]],
    ["a seed and a temperature", [{ seed: 5n, temperature: 1 }]],
    ["a limit of thinking", [{ thinking: { startIds: [5], endIds: [6], maxTokens: 100, open: true } }]],
    ["parameters for the engine", [{}, { extra: { kv_transfer_params: {} } }]],
  ];

  it.each(exact)("starts over with %s while nothing was delivered", async (_, args) => {
    const undisturbed = await run(greedy(...args), {});
    let first = true;
    const cut = () => {
      const lost = first;
      first = false;
      return lost;
    };
    expect(told(await run(greedy(...args), ...two(cut)))).toEqual(told(undisturbed));
  });

  it.each(exact)("ends with %s once a token was delivered, and says so", async (_, args) => {
    const undisturbed = await run(greedy(...args), {});
    const outputs = await run(greedy(...args), ...two((tokens) => tokens >= 1));
    const delivered = tokensOf(outputs);
    expect(delivered.length).toBeGreaterThan(0);
    expect(tokensOf(undisturbed).slice(0, delivered.length)).toEqual(delivered);
    expect(finishOf(outputs)).toMatchObject({ reason: "error", fault: "unavailable" });
  });

  it("does not resume in the middle of a bad word", async () => {
    const [first, second, third] = tokensOf(await run(greedy(), {}));
    const inside = greedy({ badWords: [[first!, second!, third!]] });
    const atTwo = await run(inside, ...two((tokens) => tokens >= 2));
    expect([tokensOf(atTwo), finishOf(atTwo)?.fault]).toEqual([[first, second], "unavailable"]);
    const undisturbed = await run(inside, {});
    expect(told(await run(inside, ...two((tokens) => tokens >= 4)))).toEqual(told(undisturbed));
  });

  it("gives each choice its own seed when it starts over", async () => {
    const request = greedy({ seed: 9n, temperature: 1 }, { n: 3 });
    const undisturbed = await run(request, {});
    expect(new Set(told(undisturbed, 3).map(({ tokens }) => JSON.stringify(tokens))).size).toBe(3);
    let left = 1;
    const outputs = await run(request, ...two(() => left-- > 0));
    expect(told(outputs, 3)).toEqual(told(undisturbed, 3));
  });

  it("knows an end whose message was lost", async () => {
    const [, , third] = tokensOf(await run(greedy(), {}));
    const request = greedy({ stopTokenIds: [third!] });
    const outputs = await run(request, ...two((tokens) => tokens >= 3));
    expect(finishOf(outputs)).toEqual({ reason: "stop", stopReason: third });
    expect(tokensOf(outputs)).toHaveLength(3);
  });

  it("is not tried for ever", async () => {
    const replicas = ["a", "b", "c", "d"].map((name) => new FakeReplica(name, { cut: () => true }));
    const { engine } = await startFleet(replicas);
    const outputs = await outputsOf(engine.generate(greedy({}, { n: 2 })));
    expect([0, 1].map((index) => finishOf(outputs, index)?.fault)).toEqual(["unavailable", "unavailable"]);
    expect(replicas.flatMap(({ requests }) => requests)).toHaveLength(5); // both, then each alone twice
    await engine.close();
  });

  it("can be left while a choice moves", async () => {
    const a = new FakeReplica("a");
    const b = new FakeReplica("b");
    const { engine } = await startFleet([a, b], { queueTimeoutMs: 60_000 });
    const generation = engine.generate(greedy({ maxTokens: 200 }));
    let taken = 0;
    for await (const output of generation) {
      if (output.type !== "tokens" || ++taken < 3) continue;
      a.die();
      b.die();
      setTimeout(() => generation.abort(), 20);
    }
    expect(engine.stats().waiting).toBe(0);
    a.revive();
    b.revive();
    expect(engine.replicas().map(({ inFlight }) => inFlight)).toEqual([0, 0]);
    expect([a.running, b.running]).toEqual([0, 0]);
    await engine.close();
  });
});
