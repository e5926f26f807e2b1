import { describe, expect, it } from "vitest";
import { ApiError as exported, FlywheelClient } from "./client.ts";
import { ApiError, isConnectionFault } from "./http.ts";
import { learningRates } from "./learning-rates.ts";

/** A server made of canned answers; records what was asked. */
function canned(answers: (() => Response | Error)[], maxRetries?: number) {
  const asked: { method: string; url: string; headers: Record<string, string> }[] = [];
  const client = new FlywheelClient({
    baseUrl: "http://server",
    apiKey: "secret",
    ...(maxRetries === undefined ? {} : { maxRetries }),
    fetch: async (url, init) => {
      asked.push({ method: init!.method!, url: String(url), headers: init!.headers as Record<string, string> });
      const answer = answers[Math.min(asked.length, answers.length) - 1]!();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { client, asked };
}
const ok = (body: unknown) => () => Response.json(body);
const fault =
  (status: number, headers: Record<string, string> = {}) =>
  () =>
    Response.json({ error: { message: "no" } }, { status, headers: { "retry-after": "0", ...headers } });
const broken = () => new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });

describe("client", () => {
  it("exports its errors from the file that programs import", () => {
    expect(exported).toBe(ApiError);
  });

  it("retries requests that are safe to repeat", async () => {
    const { client, asked } = canned([fault(500), broken, ok({ id: "j" })]);
    expect(await client.job("j")).toEqual({ id: "j" });
    expect(asked).toHaveLength(3);
    expect(asked[0]).toMatchObject({ url: "http://server/v1/preview/training-jobs/j", method: "GET" });
    expect(asked[0]!.headers.authorization).toBe("Bearer secret");
  });

  it("retries a submission only if the server says so or it has an idempotency key", async () => {
    for (const first of [fault(500), broken]) {
      const { client, asked } = canned([first, ok({ id: "j" })]);
      await expect(client.submit("m", [])).rejects.toThrow();
      expect(asked).toHaveLength(1);
      const keyed = canned([first, ok({ id: "j" })]);
      expect(await keyed.client.submit("m", [], { idempotencyKey: "k" })).toEqual({ id: "j" });
    }
    const busy = canned([fault(503), ok({ id: "j" })]);
    expect(await busy.client.submit("m", [])).toEqual({ id: "j" });
    const never = canned([fault(503, { "x-should-retry": "false" }), ok({})]);
    await expect(never.client.submit("m", [])).rejects.toThrow("503: no");
  });

  it("reports the server's message", async () => {
    const { client } = canned([fault(422)]);
    const error = await client.submit("m", []).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 422, body: { error: { message: "no" } } });
  });

  it("yields each event once across a broken connection", async () => {
    const block = (id: string, type: string) =>
      `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id, type, data: {} })}\n\n`;
    const { client, asked } = canned([
      () => new Response(block("1", "training_started") + block("2", "gradient_step")),
      () => new Response(block("3", "training_ended")),
    ]);
    const seen: string[] = [];
    for await (const event of client.events("j")) seen.push(event.id);
    expect(seen).toEqual(["1", "2", "3"]);
    expect(asked[1]!.headers["last-event-id"]).toBe("2");
  });

  it("knows a broken connection of Node and of every browser from a mistake in a program", () => {
    const broken = [
      "Failed to fetch",
      "network error",
      "NetworkError when attempting to fetch resource.",
      "Load failed",
    ];
    for (const message of broken) expect(isConnectionFault(new TypeError(message))).toBe(true);
    expect(isConnectionFault(new TypeError("terminated", { cause: new Error("other side closed") }))).toBe(true);
    expect(isConnectionFault(new TypeError("x is not a function"))).toBe(false);
    expect(isConnectionFault(new Error("Failed to fetch"))).toBe(false);
  });

  it("stops waiting for a retry when it is told to", async () => {
    const stop = new AbortController();
    const { client } = canned([
      () => {
        setTimeout(() => stop.abort(new Error("enough")), 5);
        return Response.json({}, { status: 503, headers: { "retry-after": "60" } });
      },
    ]);
    await expect(client.submit("m", [], { signal: stop.signal })).rejects.toThrow("enough");
  });

  it("fails with the connection error when the server is gone", async () => {
    const { client, asked } = canned([() => new Response("id: 1\n"), broken], 0);
    await expect(client.events("j").next()).rejects.toThrow("fetch failed");
    expect(asked).toHaveLength(2);
  });

  it("yields the pieces of a streamed reply until it is done or breaks off", async () => {
    const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
    const { client, asked } = canned([
      () => new Response(`${piece("a")}${piece("b")}data: [DONE]\n\n`),
      () => new Response(`${piece("a")}data: {"error":{"message":"it broke"}}\n\n`),
    ]);
    const read = async (seen: unknown[]) => {
      for await (const chunk of client.chatStream({ messages: [] })) seen.push(chunk.choices[0]?.delta.content);
      return seen;
    };
    expect(await read([])).toEqual(["a", "b"]);
    expect(asked[0]).toMatchObject({ method: "POST", url: "http://server/v1/chat/completions" });
    const seen: unknown[] = [];
    await expect(read(seen)).rejects.toMatchObject({ name: "ApiError", status: 200, message: "it broke" });
    expect(seen).toEqual(["a"]);
  });

  it("reads all pages of a list", async () => {
    const { client, asked } = canned([
      ok({ data: [{ id: "a" }, { id: "b" }], has_more: true }),
      ok({ data: [{ id: "c" }], has_more: false }),
    ]);
    const ids: string[] = [];
    for await (const { id } of client.models()) ids.push(id);
    expect(ids).toEqual(["a", "b", "c"]);
    expect(asked[1]!.url).toContain("after=b");
  });
});

it("computes constant, linear and cosine learning-rate schedules", () => {
  const close = (values: number[]) => values.map((value) => expect.closeTo(value, 8));
  expect(learningRates({ peak: 1, batches: 5, shape: "linear" })).toEqual(close([1, 0.75, 0.5, 0.25, 0]));
  expect(learningRates({ peak: 1, batches: 5, shape: "cosine" })).toEqual(close([1, 0.853553391, 0.5, 0.146446609, 0]));
  expect(learningRates({ peak: 1, batches: 5, shape: "linear", warmup: 2 })).toEqual(close([0.5, 1, 1, 0.5, 0]));
  expect(learningRates({ peak: 2, batches: 2, shape: "constant" })).toEqual([2, 2]);
});
