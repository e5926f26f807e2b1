// What a job may be made of: the forms that training data comes in, and its limits.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { toyIds } from "../../support/toy-encoder.ts";
import { jobFolders } from "../../support/training-service.ts";
import { choice, group, jobBody, modelBody, newModel, trajectory } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

describe("metrics", () => {
  const named = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`name${from + i}`, 1]));
  const logged = (split: string, ...metrics: object[]) => ({
    split,
    trajectory_groups: metrics.map((metrics) => group({ ...trajectory("a1 <e>", 1), metrics })),
  });

  it("have a bounded number of names: of a trajectory, of a request, of a step", async () => {
    const { id } = await newModel(server);
    const log = (body: object) => server.call("POST", `/v1/preview/models/${id}/log`, body);
    const place = ["body", "trajectory_groups", 0, "trajectories", 0, "metrics"];
    const tooMany = await log(logged("val", named(0, 1001)));
    expect(tooMany.status).toBe(422);
    expect(tooMany.json.detail[0]).toEqual({
      loc: place,
      type: "too_long",
      msg: "Dictionary should have at most 1000 items",
    });
    const job = jobBody(id, logged("val", named(0, 1001)).trajectory_groups);
    expect((await server.call("POST", "/v1/preview/training-jobs", job)).json.detail[0].loc).toEqual(place);
    expect((await log(logged("val", { ["n".repeat(257)]: 1 }))).json.detail[0].loc).toEqual(place);
    expect((await log(logged("v".repeat(129)))).json.detail[0].loc).toEqual(["body", "split"]);
    const spread = await log(logged("val", named(0, 600), named(600, 600)));
    expect(spread.status).toBe(422);
    expect(spread.json.detail[0].loc[2]).toBe(1);
    for (let i = 0; i < 9; i++) expect((await log(logged(`split${i}`, named(0, 990)))).status).toBe(200);
    const full = await log(logged("more", named(0, 1000), named(0, 1000)));
    const again = await log(logged("split1", named(0, 990)));
    const beyond = await log(logged("last", named(0, 500)));
    expect(full.status).toBe(200);
    expect(again.status).toBe(200);
    expect(beyond.status).toBe(422);
  });
});

describe("bodies", () => {
  it("takes gzip, defaults left out, unknown fields, messages with log-probabilities and captured exchanges", async () => {
    const { id } = await newModel(server);
    const logprobs = {
      content: [
        { token: "a1", logprob: -1 },
        { token: "", logprob: -1 },
      ],
    };
    const groups = [
      {
        trajectories: [
          { messages_and_choices: [{ role: "user", content: "q1" }, choice("a1 <e>")], reward: 1, novel: {} },
          {
            messages_and_choices: [
              { role: "user", content: "q1" },
              { role: "assistant", content: "a1", logprobs },
            ],
          },
          {
            reward: 0.25,
            exchanges: {
              chat_completions: [
                {
                  request: { model: "m", messages: [{ role: "user", content: "q1" }] },
                  response: {
                    prompt_token_ids: toyIds("q1"),
                    choices: [choice("a1 <e>", { token_ids: toyIds("a1 <e>") })],
                  },
                },
                {
                  request: { model: "m", messages: [] },
                  response: { prompt_token_ids: toyIds("q1 a1 <e> q2"), choices: [choice("a2 <e>")] },
                },
              ],
            },
          },
        ],
      },
      {},
    ];
    const raw = gzipSync(JSON.stringify({ trajectory_groups: groups, dry_run: true, model_id: id, extra: [1] }));
    const { status, json } = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw,
      headers: { "content-encoding": "gzip" },
    });
    expect(status).toBe(200);
    expect(json.trajectories.map((t: { status: string }) => t.status)).toEqual(["trained", "trained", "trained"]);
    expect(json.trajectories[1].tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
    expect(json.trajectories[2].sequences).toHaveLength(1);
    expect(json.trajectories[2].mask).toEqual([0, 1, 1, 0, 1, 1]);
  });

  it.each([null, []])("takes the tokens of a refusal where content is %j", async (content) => {
    const { id } = await newModel(server);
    const refusal = choice("a1 <e>").logprobs.content;
    const refused = choice("", { logprobs: { content, refusal } });
    const groups = [group(trajectory("", 1, { messages_and_choices: [{ role: "user", content: "q1" }, refused] }))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    expect(json.trajectories[0].tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
    expect(json.trajectories[0].mask.slice(-2)).toEqual([1, 1]);
  });

  it("knows tokens by their bytes, whatever their text looks like", async () => {
    const { id } = await newModel(server);
    const entry = (token: string, bytes: string | null) => ({
      ...{ token, logprob: -1, top_logprobs: [] },
      bytes: bytes === null ? null : [...Buffer.from(bytes)],
    });
    const logprobs = { content: [entry("a1", "a2"), entry("a3", null), entry("", null)] };
    const groups = [group(trajectory("", 1, { messages_and_choices: [choice("a1", { logprobs })] }))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    expect(json.trajectories[0].tokens.slice(-3)).toEqual(toyIds("a2 a3 <e>"));
    expect(json.metrics.num_retokenised).toBe(0);
  });

  it("needs no token texts where the ids are given", async () => {
    const { id } = await newModel(server);
    const replies = [
      choice("a1", { token_ids: toyIds("a1 <e>"), logprobs: { content: [{ logprob: -1 }, { logprob: -1 }] } }),
      choice("a1", { logprobs: { content: toyIds("a1 <e>").map((token_id) => ({ token_id, logprob: -1 })) } }),
    ];
    const groups = [group(...replies.map((reply, i) => trajectory("", i, { messages_and_choices: [reply] })))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    for (const { tokens } of json.trajectories) expect(tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
  });

  it("trains every choice of a captured exchange, with and without its prompt's ids", async () => {
    const { id } = await newModel(server);
    const request = { messages: [{ role: "user", content: "q1" }] };
    const choices = [choice("a1 <e>"), choice("a2 a3 <e>")];
    const captured = (response: object) => ({ exchanges: { chat_completions: [{ request, response }] } });
    const groups = [
      group(
        { ...captured({ choices, prompt_token_ids: toyIds("q1") }), reward: 1 },
        { ...captured({ choices }), reward: 0, messages_and_choices: [], tools: null, additional_histories: [] },
        // nothing was captured: the messages count
        trajectory("a1 <e>", 0.25, { exchanges: { chat_completions: [], responses: null } }),
      ),
    ];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    const trained = json.trajectories.map(({ sequences }: { sequences: { tokens: number[]; mask: number[] }[] }) =>
      sequences.map(({ tokens, mask }) => tokens.filter((_, i) => mask[i] === 1)),
    );
    const both = [toyIds("a1 <e>"), toyIds("a2 a3 <e>")];
    expect(trained).toEqual([both, both, [toyIds("a1 <e>")]]);
  });

  it("trains each turn of captured exchanges once: what a request repeats is context", async () => {
    const { id } = await newModel(server);
    const question = (content: string) => ({ role: "user", content });
    const first = [question("q1")];
    const second = [...first, { role: "assistant", content: "a1" }, question("q2")];
    const calls = [first, second].map((messages, i) => ({
      request: { messages },
      response: { choices: [choice(`a${i + 1}`, { logprobs: null, token_ids: toyIds(`a${i + 1} <e>`) })] },
    }));
    const groups = [group({ exchanges: { chat_completions: calls }, reward: 1 }, trajectory("a3 <e>", 0))];
    const config = { experimental_config: { allow_training_without_logprobs: true }, dry_run: true };
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, config));
    const { sequences } = json.trajectories[0] as { sequences: { tokens: number[]; mask: number[] }[] };
    const trained = sequences.flatMap(({ tokens, mask }) => tokens.filter((_, i) => mask[i] === 1));
    expect(trained).toEqual(toyIds("a1 <e> a2 <e>"));
  });

  it("names the place of a captured exchange that cannot be trained", async () => {
    const { id } = await newModel(server);
    const call = (role: string, tokens: number[]) => ({
      request: { messages: [{ role, content: "q1" }] },
      response: { choices: [choice("a1 <e>"), choice("a1 <e>", { token_ids: tokens })] },
    });
    const captured = (...calls: unknown[]) => ({ exchanges: { chat_completions: calls }, reward: 1 });
    const given = { ...call("user", [998, 999]), request: { messages: [] } };
    const groups = [
      group(
        captured(call("user", toyIds("a1 <e>")), call("user", [998, 999])),
        captured(call("alien", toyIds("a1 <e>"))),
        captured({ ...given, response: { ...given.response, prompt_token_ids: toyIds("q1") } }),
        trajectory("a3 <e>", 0),
      ),
    ];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    expect(json.trajectories.map(({ message }: { message: string | null }) => message)).toEqual([
      expect.stringMatching(/^exchanges\.chat_completions\[1\]\.response\.choices\[1\]: token id 998/),
      "exchanges.chat_completions[0].request.messages[0].role: There are no aliens.",
      expect.stringMatching(/^exchanges\.chat_completions\[0\]\.response\.choices\[1\]: token id 998/),
      null,
    ]);
  });

  it("limits their size, packed or not, and says so", async () => {
    const { id } = await newModel(server);
    const big = JSON.stringify(jobBody(id, [group(trajectory("a1", 0, { metadata: { text: "x".repeat(2 ** 20) } }))]));
    const plain = await server.call("POST", "/v1/preview/training-jobs", undefined, { raw: big });
    expect(plain.status).toBe(413);
    expect(plain.json.error.code).toBe(413);
    const packed = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw: gzipSync(big),
      headers: { "content-encoding": "gzip" },
    });
    expect(packed.status).toBe(413);
    // those of jobs that are over go after their ends are recorded
    await expect.poll(() => jobFolders(server.bench)).toEqual([]);
  });

  it("limits the values of one trajectory or example, however many a group has together", async () => {
    const large = await startTrainingServer({ maxBytes: 2 ** 25 });
    try {
      const { id } = (await large.call("POST", "/v1/preview/models", modelBody())).json;
      const noted = (values: number) => trajectory("a1", 0, { metadata: { values: new Array(values).fill(0) } });
      const post = (groups: unknown[]) =>
        large.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
      const fits = await post([group(noted(1_500_000), noted(1_500_000))]);
      expect(fits.status).toBe(200);
      expect(fits.json.trajectories?.length).toBe(2);
      const tooMany = await post([group(trajectory("a1", 1)), group(trajectory("a1", 1), noted(2_000_000))]);
      const place = "trajectory_groups[1].trajectories[1]";
      expect(tooMany.json.error).toMatchObject({
        ...{ code: 413, type: "RequestTooLargeError", param: "body.trajectory_groups.1.trajectories.1" },
        message: `${place} has more than 2000000 values.`,
      });
      expect(tooMany.status).toBe(413);
      expect(tooMany.json.detail).toEqual(tooMany.json.error.message);
      const example = { messages: [{ role: "assistant", content: "a1" }], tools: new Array(1_000_000).fill({}) };
      const body = { model_id: id, training_data: [example] };
      expect((await large.call("POST", "/v1/preview/sft-training-jobs", body)).status).toBe(413);
      await expect.poll(() => jobFolders(large.bench)).toEqual([]);
    } finally {
      await large.close();
    }
  });

  it.each([
    ["no JSON", "nonsense", undefined],
    ["cut JSON", '{"model_id":', undefined],
    ["no gzip", "{}", { "content-encoding": "gzip" }],
  ])("refuses %s with 422", async (_what, raw, headers) => {
    const answer = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw,
      ...(headers ? { headers } : {}),
    });
    expect(answer.status).toBe(422);
    expect(Array.isArray(answer.json.detail)).toBe(true);
  });
});
