// POST /v1/structured_outputs/inspect: what a constraint allowed at each token, and what the model preferred.

import { expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { type Loose, startTestServer } from "../../support/test-server.ts";

const server = shared(() => startTestServer({ config: { maxLogprobs: -1 } }));
const PATH = "/v1/structured_outputs/inspect";
const bytes = (text: string) => [...Buffer.from(text)];

async function inspect(body: object): Promise<Loose> {
  const reply = await server.post(PATH, body);
  const json = await reply.json();
  expect(reply.status, JSON.stringify(json)).toBe(200);
  return json;
}

it("counts legal tokens, and tells where the output is forced and where it may end", async () => {
  const { positions, ...rest } = await inspect({ structured_outputs: { regex: "(yes|no)[a-c]*" }, text: "yesb" });
  expect(rest).toEqual({ object: "structured_outputs.inspection", model: "fake", may_end: true });
  expect(positions).toEqual([
    { token: 0x79, token_string: "y", allowed: true, legal: 2, forced: false, may_end: false },
    { token: 0x65, token_string: "e", allowed: true, legal: 1, forced: true, may_end: false },
    { token: 0x73, token_string: "s", allowed: true, legal: 1, forced: true, may_end: false },
    // a, b, c or the end
    { token: 0x62, token_string: "b", allowed: true, legal: 4, forced: false, may_end: true },
  ]);
});

it("stops at a token that is not legal", async () => {
  const { positions, may_end } = await inspect({ structured_outputs: { choice: ["yes", "no"] }, tokens: bytes("nxo") });
  expect(positions.map(({ allowed }: Loose) => allowed)).toEqual([true, false]);
  expect(may_end).toBe(false);
});

it("gives the mass that explains the log-probabilities of a constrained reply", async () => {
  const structured_outputs = { json: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } };
  const prompt = "tell me";
  const body = {
    prompt,
    structured_outputs,
    max_tokens: 24,
    temperature: 1,
    seed: 3,
    logprobs: 0,
    return_token_ids: true,
  };
  const [choice] = (await (await server.post("/v1/completions", body)).json()).choices;
  const tokens = choice.token_ids.slice(0, -1);
  const { positions } = await inspect({ structured_outputs, tokens, prompt_token_ids: choice.prompt_token_ids });
  const free = await (
    await server.post("/v1/completions", {
      ...{ prompt: [...choice.prompt_token_ids, ...tokens], echo: true, max_tokens: 0, logprobs: 0 },
    })
  ).json();
  for (const [i, position] of positions.entries()) {
    const sampled = choice.logprobs.token_logprobs[i];
    expect(position.logprob).toBe(free.choices[0].logprobs.token_logprobs[choice.prompt_token_ids.length + i]);
    expect(position.legal_mass).toBeGreaterThan(0);
    expect(position.legal_mass).toBeLessThanOrEqual(1);
    expect(position.likeliest_legal.logprob).toBeGreaterThanOrEqual(position.logprob);
    if (!position.forced) expect(position.logprob - Math.log(position.legal_mass)).toBeCloseTo(sampled, 7);
  }
  const bent = positions.find(({ legal_mass }: Loose) => legal_mass < 0.5);
  expect(bent.likeliest_illegal.logprob).toBeLessThan(0);
});

it("answers many questions, and a broken one ends only itself", async () => {
  const good = { structured_outputs: { choice: ["yes", "no"] }, text: "no" };
  const replies = await Promise.all([
    ...Array.from({ length: 8 }, () => server.post(PATH, good)),
    server.post(PATH, { structured_outputs: { regex: "(" }, text: "x" }),
  ]);
  expect(replies.map(({ status }) => status)).toEqual([...Array(8).fill(200), 400]);
});

it.each([
  [{ text: "x" }, /structured_outputs or response_format/],
  [{ structured_outputs: { choice: ["a"] } }, /tokens or as text/],
  [{ structured_outputs: { choice: ["a"] }, tokens: [999_999] }, /below/],
  [{ structured_outputs: { choice: ["a"] }, tokens: Array(5000).fill(1) }, /At most 4096/],
  [{ structured_outputs: { choice: ["a"] }, tokens: [97], prompt_token_ids: [] }, /not be empty/],
  [{ structured_outputs: { choice: ["a"] }, tokens: [97], prompt_token_ids: Array(4000).fill(5) }, /may have/],
  [{ structured_outputs: { choice: [] }, tokens: [97] }, /must not be empty/],
])("refuses %j", async (body, message) => {
  const reply = await server.post(PATH, body);
  expect(reply.status).toBe(400);
  expect((await reply.json()).error.message).toMatch(message);
});
