// Requests that try to steer the servers of --engine-url: where they fetch keys and values from, which rank runs them,
// which plug-ins they load. The tests look at what reaches such a server.
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import type { CompletionBody } from "../support/fake-vllm.ts";
import { type Front, send, startFront } from "./front.ts";

const TRANSFER = { do_remote_prefill: true, remote_host: "198.51.100.7", remote_port: 5600, remote_block_ids: [1] };
const ARGS = { plugin: "of.the.attacker", kv_transfer_params: "x" };
/** What else vLLM, its proxies and its plug-ins know. */
const OTHERS = {
  ec_transfer_params: TRANSFER,
  mm_processor_kwargs: { device: "cuda:1" },
  media_io_kwargs: { video: {} },
  logits_processors: [{ qualname: "os.system" }],
  data_parallel_rank: 3,
  session_id: "s",
  documents: null,
  lora_request: { lora_path: "/etc" },
  lora_path: "/etc",
  routed_experts_prompt_start: 1,
};
const STEERING = { kv_transfer_params: TRANSFER, engine_xargs: ARGS, vllm_xargs: { b: 1 }, ...OTHERS };
const HEADERS = { "x-data-parallel-rank": "3", "x-session-id": "s", "x-request-id": "r", "x-flywheel": "1" };
const CHAT = { messages: [{ role: "user", content: "go" }], max_tokens: 2 };
const ROUTES: [string, Record<string, unknown>][] = [
  ["/v1/chat/completions", { ...CHAT, ...STEERING }],
  ["/v1/chat/completions", { ...CHAT, ...STEERING, stream: true }],
  ["/v1/chat/completions/batch", { ...CHAT, messages: [CHAT.messages], ...STEERING }],
  ["/v1/completions", { prompt: "go", max_tokens: 2, ...STEERING }],
  ["/v1/completions", { prompt: "go", max_tokens: 2, prompt_logprobs: 1, ...STEERING }],
  ["/v1/messages", { ...CHAT, ...STEERING }],
  ["/v1/responses", { input: "go", max_output_tokens: 2, store: false, ...STEERING }],
  [
    "/inference/v1/generate",
    {
      token_ids: [5, 6],
      sampling_params: { max_tokens: 2, extra_args: { ...ARGS, kv_transfer_params: TRANSFER }, ...OTHERS },
      ...STEERING,
    },
  ],
];
/** The fields of a completion that Flywheel itself decides on. */
const OWN_FIELDS = new Set(
  (
    "model prompt n priority stream stream_options max_tokens min_tokens temperature top_p top_k min_p repetition_penalty " +
    "frequency_penalty presence_penalty logit_bias allowed_token_ids bad_words logprobs prompt_logprobs return_token_ids " +
    "return_tokens_as_token_ids skip_special_tokens stop stop_token_ids ignore_eos seed request_id cache_salt"
  ).split(" "),
);

/** What the replica gets for a request. */
async function reaches({ replica, server }: Front, path: string, body: object) {
  const before = replica.completions.length;
  const { status, text } = await send(server, "POST", path, body, HEADERS);
  expect(`${status} ${text}`).toMatch(/^200 /);
  const sent: CompletionBody[] = replica.completions.slice(before);
  expect(sent.length).toBeGreaterThan(0);
  return { sent, text };
}

describe("a request that steers replicas", () => {
  it("is answered on every route, and nothing of it reaches the replica", async () => {
    const one = await startFront();
    for (const [path, body] of ROUTES) {
      const { sent, text } = await reaches(one, path, body);
      for (const completion of sent) {
        expect(Object.keys(completion).filter((field) => !OWN_FIELDS.has(field))).toEqual([]);
        expect(JSON.stringify(completion)).not.toMatch(/198\.51|attacker|os\.system|\/etc/);
      }
      expect(text).not.toContain("remote_block_ids");
    }
  });

  it("is named in the log, each parameter once", async () => {
    const one = await startFront();
    const lines = () => JSON.stringify(one.server.service.logTail.lines);
    await reaches(one, ...ROUTES[0]!);
    await reaches(one, ...ROUTES[0]!);
    for (const name of [
      "kv_transfer_params.remote_host",
      "engine_xargs.plugin",
      "vllm_xargs.b",
      "--allowed-engine-args",
    ]) {
      expect(lines().split(name)).toHaveLength(2);
    }
  });

  it("passes on the members that --allowed-engine-args names, from every field, and no other", async () => {
    const one = await startFront({ allowedEngineArgs: ["remote_port", "b"] });
    for (const [path, body] of ROUTES.filter(([path]) => !/messages|responses/.test(path))) {
      const completion = (await reaches(one, path, body)).sent.at(-1)!;
      expect(completion.kv_transfer_params).toEqual({ remote_port: 5600 });
      expect(completion.vllm_xargs).toEqual(path.includes("generate") ? undefined : { b: 1 });
    }
  });

  it("cannot be allowed whole fields by mistake", () => {
    const flags = { allowedEngineArgs: ["kv_transfer_params"] };
    expect(() => loadConfig({ env: {}, flags })).toThrow(/names of members/);
  });
});
