import { describe, expect, it } from "vitest";
import { sharedServer } from "../../support/shared-server.ts";
import { CASES } from "./validation-cases.ts";

const server = sharedServer();

const minimal = { messages: [{ role: "user", content: "hi" }], max_tokens: 2 };

describe("outcome of every case", () => {
  it.each(CASES)("$name", async ({ body, expect: expected }) => {
    const response = await server.post(
      "/v1/chat/completions",
      typeof body === "string" ? body : { ...minimal, ...body },
    );
    const text = await response.text();
    expect(outcome(response.status, text), text).toBe(expected);
  });
});

describe("the same refusals are real 4xx with stream: true", () => {
  const refusals = CASES.filter((c) => c.expect !== "200" && typeof c.body !== "string");
  it.each(refusals)("$name", async ({ body, expect: refusal }) => {
    const response = await server.post("/v1/chat/completions", { ...minimal, stream: true, ...(body as object) });
    const text = await response.text();
    // only outside a stream is stream_options a mistake
    const expected = refusal === "400 B stream_options" ? "200" : refusal;
    expect(outcome(response.status, text), text).toBe(expected);
  });
});

describe("of several mistakes, the first in order is reported", () => {
  const unknown = { model: "nobody" };
  const tooLong = { messages: [{ role: "user", content: "x".repeat(3000) }] };
  const repetition = { repetition_detection: { max_pattern_size: 2, min_pattern_size: 3, min_count: 2 } };
  it.each([
    ["a wrong type before an unknown model", { ...unknown, n: "x" }, "400 T body.n"],
    ["fields that contradict each other before an unknown model", { ...unknown, structured_outputs: {} }, "400 B -"],
    ["a rule of one field before an unknown model", { ...unknown, ...repetition }, "400 B -"],
    ["an unknown model before the length", { ...unknown, ...tooLong }, "404 NotFoundError model"],
    [
      "the length before what the engine refuses",
      { ...tooLong, logprobs: true, top_logprobs: 999 },
      "400 B input_tokens",
    ],
  ])("%s", async (_what, body, expected) => {
    const response = await server.post("/v1/chat/completions", { ...minimal, ...body });
    const text = await response.text();
    expect(outcome(response.status, text), text).toBe(expected);
  });
});

function outcome(status: number, text: string): string {
  if (status === 200) return "200";
  const { error } = JSON.parse(text) as {
    error: { type: string; param: string | null; code: number; message: string };
  };
  expect(Object.keys(error)).toEqual(["message", "type", "param", "code"]);
  expect(error.code).toBe(status);
  expect(error.message).not.toMatch(/\/work|node_modules|at Object|\.ts:/);
  const family = error.type === "Bad Request" ? "T" : error.type === "BadRequestError" ? "B" : error.type;
  return `${status} ${family} ${error.param ?? "-"}`;
}
