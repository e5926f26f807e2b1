// What training requests are refused for: each problem gets a 422 that names its place.

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { choice, group, jobBody, modelBody, newModel, trajectory } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

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

  it.each([
    ["GET", "/v1/preview/models?name=a%00", undefined, ["query", "name"]],
    ["GET", "/v1/preview/training-jobs?after=%00", undefined, ["query", "after"]],
    ["GET", "/v1/preview/training-jobs/a%00b", undefined, ["path", "id"]],
    [
      "POST",
      "/v1/training/runs:resolve",
      {
        ...{ request_id: "r\0", run_name: null, initial_state: null },
        spec: { base_model: "tiny", dtype: null, lora_rank: 2, lora_target_modules: ["all-linear"], seed: null },
      },
      ["body", "request_id"],
    ],
  ] as const)("U+0000, which not every database can hold: %s %s", async (method, path, body, loc) => {
    const { status, json } = await server.call(method, path, body);
    expect(status).toBe(422);
    expect(json.detail[0].loc).toEqual(loc);
    expect(json.detail[0].msg).toContain("without U+0000");
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
