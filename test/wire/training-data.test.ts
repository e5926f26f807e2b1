// What a job may be made of: the forms that training data comes in, its limits, and every refusal.

import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { toyIds } from "../fakes/toy-encoder.ts";
import { shared } from "./shared-server.ts";
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
    expect(readdirSync(join(server.bench.folder, "training", "jobs"))).toEqual([]);
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
      expect(readdirSync(join(large.bench.folder, "training", "jobs"))).toEqual([]);
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

describe("validation: 422 with the path of every problem", () => {
  const at = (...path: (string | number)[]) => ["body", "trajectory_groups", 0, "trajectories", 0, ...path];
  const withItem = (item: unknown) => [group(trajectory("a1", 1, { messages_and_choices: [item] }))];
  const withField = (fields: object) => [group(trajectory("a1", 1, fields as Record<string, unknown>))];
  it.each([
    ["missing model_id", { model_id: undefined }, ["body", "model_id"], "missing"],
    ["null model_id", { model_id: null }, ["body", "model_id"], "missing"],
    ["model_id no UUID", { model_id: "x" }, ["body", "model_id"], "uuid_parsing"],
    ["missing groups", { trajectory_groups: undefined }, ["body", "trajectory_groups"], "missing"],
    ["groups no list", { trajectory_groups: {} }, ["body", "trajectory_groups"], "list_type"],
    ["group no object", { trajectory_groups: [1] }, ["body", "trajectory_groups", 0], "dict_type"],
    ["reward text", { trajectory_groups: withField({ reward: "high" }) }, at("reward"), "float_type"],
    ["reward too large", { trajectory_groups: withField({ reward: "1e999" }) }, at("reward"), "float_type"],
    ["reward too far", { trajectory_groups: withField({ reward: 1.7e308 }) }, at("reward"), "less_than_equal"],
    ["reward too low", { trajectory_groups: withField({ reward: -2e100 }) }, at("reward"), "greater_than_equal"],
    [
      "metric too far",
      { trajectory_groups: withField({ metrics: { a: 1e300 } }) },
      at("metrics", "a"),
      "less_than_equal",
    ],
    [
      "element neither",
      { trajectory_groups: withItem({ content: "x" }) },
      at("messages_and_choices", 0),
      "value_error",
    ],
    [
      "element both",
      { trajectory_groups: withItem({ role: "user", message: {} }) },
      at("messages_and_choices", 0),
      "value_error",
    ],
    [
      "logprob text",
      { trajectory_groups: withItem(choice("a1", { logprobs: { content: [{ token: "a", logprob: "x" }] } })) },
      at("messages_and_choices", 0, "logprobs", "content", 0, "logprob"),
      "float_type",
    ],
    ...[{ logprob: -1 }, { token: null, logprob: -1 }, { bytes: [97], logprob: -1 }].map(
      (entry) =>
        [
          `logprob entry without a token: ${JSON.stringify(entry)}`,
          {
            trajectory_groups: withItem(choice("a1", { logprobs: { content: [{ token: "a1", logprob: -1 }, entry] } })),
          },
          at("messages_and_choices", 0, "logprobs", "content", 1, "token"),
          "missing",
        ] as const,
    ),
    ...["messages_and_choices", "tools", "additional_histories"].map((field) => {
      const legacy = { messages_and_choices: [], tools: null, [field]: [{ messages_and_choices: [], role: "user" }] };
      const exchanges = { chat_completions: [{ request: {}, response: {} }] };
      const what = `exchanges beside ${field}`;
      return [
        what,
        { trajectory_groups: withField({ ...legacy, exchanges }) },
        at("exchanges"),
        "value_error",
      ] as const;
    }),
    [
      "history without elements",
      { trajectory_groups: withField({ additional_histories: [{}] }) },
      at("additional_histories", 0, "messages_and_choices"),
      "missing",
    ],
    ...[
      [{}, ["function"]],
      [{ type: "function", function: {} }, ["function", "name"]],
      [{ type: "function", function: { name: 5 } }, ["function", "name"], "string_type"],
    ].flatMap(([tool, place, type = "missing"]) => {
      const at0 = (...path: (string | number)[]) => at(...path, "tools", 0, ...(place as string[]));
      const history = { messages_and_choices: [], tools: [tool] };
      const exchange = { request: { messages: [], tools: [tool] }, response: {} };
      const captured = { messages_and_choices: [], exchanges: { chat_completions: [exchange] } };
      const what = `tool ${JSON.stringify(tool)}`;
      return [
        [what, { trajectory_groups: withField({ tools: [tool] }) }, at0(), type],
        [
          `${what} of another history`,
          { trajectory_groups: withField({ additional_histories: [history] }) },
          at0("additional_histories", 0),
          type,
        ],
        [
          `${what} of a captured call`,
          { trajectory_groups: withField(captured) },
          at0("exchanges", "chat_completions", 0, "request"),
          type,
        ],
      ] as [string, object, (string | number)[], string][];
    }),
    ["metric text", { trajectory_groups: withField({ metrics: { a: "b" } }) }, at("metrics", "a"), "float_type"],
    [
      "version fraction",
      { trajectory_groups: withField({ initial_policy_version: 1.5 }) },
      at("initial_policy_version"),
      "int_type",
    ],
  ] as [string, object, (string | number)[], string][])("%s", async (_what, change, loc, type) => {
    const body = { ...jobBody(randomUUID()), ...change };
    const { status, json } = await server.call("POST", "/v1/preview/training-jobs", body);
    expect(status).toBe(422);
    expect(json.detail[0]).toMatchObject({ loc, type, msg: expect.any(String) });
    expect(json.error).toMatchObject({ code: 422, type: "UnprocessableEntityError", param: loc.join(".") });
  });

  it.each([
    [{ alt_k2_tau: 0.1, kimi_k2_tau: 0.2 }, "kimi_k2_tau"],
    [{ kl_ref_adapter_path: "/etc/passwd" }, "kl_ref_adapter_path"],
    [{ loss_fn: "ppo", ppo: false }, "loss_fn"],
    [{ loss_fn: "dpo" }, "loss_fn"],
    [{ importance_sampling_level: "word" }, "importance_sampling_level"],
    [{ advantage_balance: 2 }, "advantage_balance"],
    [{ learning_rate: -1 }, "learning_rate"],
    [{ learning_rate: "fast" }, "learning_rate"],
    [{ scale_rewards: true, normalize_advantages: false }, "normalize_advantages"],
    [{ kl_penalty_reference_step: 1, kl_penalty_step_lag: 1 }, "kl_penalty_step_lag"],
    [{ packed_sequence_length: 100_000, logprob_calculation_chunk_size: 100 }, "packed_sequence_length"],
    [{ packed_sequence_length: 1500 }, "packed_sequence_length"],
    [{ grad_accumulation_sequences: 0 }, "grad_accumulation_sequences"],
    [{ ppo: "yes" }, "ppo"],
    [{ max_grad_norm: 0 }, "max_grad_norm"],
    [{ max_grad_norm: -1 }, "max_grad_norm"],
  ])("experimental_config %j", async (config, field) => {
    const { id } = await newModel(server);
    const { status, json } = await server.call(
      "POST",
      "/v1/preview/training-jobs",
      jobBody(id, [], { experimental_config: config }),
    );
    expect(status).toBe(422);
    expect(json.detail[0].loc).toEqual(["body", "experimental_config", field]);
  });

  it("lists several problems at once", async () => {
    const groups = [group(trajectory("a1", 1, { reward: [] })), group(trajectory("a1", 1, { reward: {} })), 5];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", { trajectory_groups: groups });
    expect(json.detail).toHaveLength(4);
    expect(json.error.message).toMatch(/and 3 more/);
    expect(json.error.message).toContain("trajectory_groups.2: Input should be a valid dictionary");
    expect(json.error.message).toContain("body.model_id: Field required");
  });

  it("keeps a message with very many problems short", async () => {
    const groups = [group(...Array.from({ length: 50 }, () => trajectory("a1", 1, { reward: [] })))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(randomUUID(), groups));
    expect(json.detail).toHaveLength(50);
    expect(json.error.message).toMatch(/and 49 more: .*…/);
    expect(json.error.message.length).toBeLessThan(1000);
  });

  it("says that it fetches no URLs, whatever else is missing", async () => {
    const body = { model_id: randomUUID(), training_data_url: "wandb-artifact:///a/b/c:v1" };
    const { status, json } = await server.call("POST", "/v1/preview/sft-training-jobs", body);
    expect(status).toBe(422);
    expect(json.detail.map(({ loc }: { loc: string[] }) => loc.join("."))).toEqual([
      "body.training_data",
      "body.training_data_url",
    ]);
    expect(json.error.message).toContain("this server fetches no URLs");
  });

  it.each<[object, string]>([
    [{ project: "p", name: "n" }, "base_model"],
    [{ project: "p", base_model: "tiny" }, "name"],
    [{ project: "p", name: "a/b", base_model: "tiny" }, "name"],
    [{ project: "..\\x", name: "n", base_model: "tiny" }, "project"],
    [{ project: "p", name: "tiny\u0000", base_model: "tiny" }, "name"],
    [{ project: "p", name: "\u001b[2J", base_model: "tiny" }, "name"],
    [{ project: "\ud800", name: "n", base_model: "tiny" }, "project"],
    ...[".", ".."].flatMap((dots) =>
      ["entity", "project", "name"].map((field): [object, string] => [
        { project: "p", name: "n", base_model: "tiny", [field]: dots },
        field,
      ]),
    ),
    [{ project: "p", name: "n", base_model: "tiny", from: {} }, "from"],
  ])("model %j", async (body, field) => {
    const { status, json } = await server.call("POST", "/v1/preview/models", body);
    expect(status).toBe(422);
    expect(json.detail[0].loc[1]).toBe(field);
  });

  it("names the base models when one is unknown, and refuses a second model of a name", async () => {
    const unknown = await server.call("POST", "/v1/preview/models", { project: "p", name: "n", base_model: "gpt" });
    expect(unknown.status).toBe(422);
    expect(unknown.json.detail[0].msg).toEqual(expect.stringContaining("tiny"));
    const body = { ...modelBody(), return_existing: false };
    expect((await server.call("POST", "/v1/preview/models", body)).status).toBe(200);
    expect((await server.call("POST", "/v1/preview/models", body)).status).toBe(409);
  });
});
