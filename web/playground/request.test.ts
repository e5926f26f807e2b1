import { describe, expect, it } from "vitest";
import type { Message } from "./message.ts";
import { chatBody, continuationBody, extraFields } from "./request.ts";
import { DEFAULTS } from "./settings.ts";

const TURNS: Message[] = [{ role: "user", content: "Hi" }];

describe("a request", () => {
  it("has only what was set, and the server's defaults for the rest", () => {
    expect(chatBody(DEFAULTS, "m", TURNS, 7)).toEqual({
      model: "m",
      messages: TURNS,
      seed: 7,
      logprobs: true,
      top_logprobs: 5,
      return_tokens_as_token_ids: true,
      return_token_ids: true,
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
  });

  it("has the system message first, and more fields last", () => {
    const settings = {
      ...DEFAULTS,
      ...{
        n: 4,
        system: "Be brief.",
        alternatives: 0,
        params: { temperature: 0 },
        extra: '{"seed": 1, "stop": ["x"]}',
      },
    };
    const body = chatBody(settings, "m", TURNS, 7);
    expect(body).toMatchObject({ n: 4, temperature: 0, seed: 1, stop: ["x"] });
    expect(body.messages).toEqual([{ role: "system", content: "Be brief." }, ...TURNS]);
    expect(body).not.toHaveProperty("logprobs");
  });

  it("says what is wrong with more fields", () => {
    expect(() => extraFields('{"stop": }')).toThrow("More fields: This is not JSON: expected a value.");
    expect(() => extraFields("[]")).toThrow("one JSON object");
    expect(extraFields(" ")).toEqual({});
  });

  it("goes on with the same sampling and what is left of the length", () => {
    const chat = chatBody({ ...DEFAULTS, params: { temperature: 0.5, max_tokens: 10 } }, "m", TURNS, 7);
    expect(continuationBody(chat, [1, 2, 3], 4)).toMatchObject({
      ...{ model: "m", prompt: [1, 2, 3], seed: 7, temperature: 0.5, max_tokens: 6, logprobs: 5, stream: true },
    });
    expect(continuationBody(chat, [1], 99).max_tokens).toBe(1);
  });
});
