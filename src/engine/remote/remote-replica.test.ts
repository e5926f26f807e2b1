import { afterEach, expect, it } from "vitest";
import { FakeVllm, type FakeVllmOptions } from "../../../test/support/fake-vllm.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "../../../test/support/requests.ts";
import type { EngineOutput, Generation } from "../contract.ts";
import { RemoteReplica } from "./remote-replica.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function startFake(options: FakeVllmOptions = {}, port = 0): Promise<FakeVllm> {
  const fake = await FakeVllm.start(options, port);
  opened.push(fake);
  return fake;
}

/** `silenceMs`: long, because on a busy machine a server is silent for a while. */
async function connect(
  url: string,
  apiKey: string | null = null,
  silenceMs = 60_000,
  front = "a",
): Promise<RemoteReplica> {
  const replica = new RemoteReplica({
    url,
    apiKey,
    front,
    maxInFlight: 8,
    vocabSize: 100,
    maxModelLen: 1024,
    maxLoras: 2,
    maxLoraRank: 8,
    times: { intervalMs: 20, silenceMs },
  });
  opened.unshift(replica); // closed before its server
  await expect.poll(() => [replica.state, replica.unusable]).not.toEqual(["starting", null]);
  return replica;
}

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

const PROMPT = Array.from({ length: 40 }, (_, i) => i + 3);

/** The tokens that the fake generates after a prompt. */
function expected(fake: FakeVllm, prompt: readonly number[], count: number): number[] {
  const tokens: number[] = [];
  while (tokens.length < count) tokens.push(fake.nextToken([...prompt, ...tokens]));
  return tokens;
}

it("learns what the server serves", async () => {
  const fake = await startFake({ maxModelLen: 512 });
  const replica = await connect(fake.url);
  expect(replica.info).toEqual({
    vocabSize: 100,
    maxModelLen: 512,
    positionsPerBlock: 16,
    cacheTokens: 8192,
    linkSize: 16,
    policy: "priority",
    maxLoras: 4,
    maxLoraRank: 8,
  });
  expect(replica.load?.requests).toBe(3);
  expect((await connect((await startFake({ fcfs: true })).url)).info?.policy).toBe("fcfs");
});

it("says why a server cannot be used", async () => {
  const withoutIds = await startFake();
  withoutIds.prank = (body) => {
    body.return_token_ids = false;
    return false;
  };
  expect((await connect(withoutIds.url)).unusable).toContain("returns no token ids");
  const locked = await startFake({ apiKey: "secret" });
  expect((await connect(locked.url)).unusable).toContain("--engine-api-key");
  expect((await connect(locked.url, "secret")).state).toBe("ready");
});

it("generates, however the network cuts the stream", async () => {
  for (const pieces of [[1], [2, 3, 5, 7], [1000]]) {
    const fake = await startFake({ pieces });
    const replica = await connect(fake.url);
    const outputs = await collect(replica.generate(generateRequest(PROMPT, { logprobs: 2 })));
    expect(tokensOf(outputs)).toEqual(expected(fake, PROMPT, 8));
    expect(finishOf(outputs)).toEqual({ reason: "length", stopReason: null });
    expect(outputs[0]).toMatchObject({ type: "prefill", promptLogprobs: null });
    const [first] = outputs.flatMap((output) => (output.type === "tokens" ? output.tokens : []));
    const { id } = first!;
    expect(first!.logprobs).toEqual({ logprob: -1, rank: null, topIds: [id + 1, id + 2], topLogprobs: [-2, -3] });
  }
});

it("tells the cached tokens before the last choice finishes, once", async () => {
  const fake = await startFake({ pace: 5 });
  const replica = await connect(fake.url);
  const outputs = await collect(replica.generate(generateRequest(PROMPT, {}, { n: 3 })));
  expect(outputs.filter(({ type }) => type === "usage")).toEqual([{ type: "usage", cachedTokens: 32 }]);
  expect(outputs.findIndex(({ type }) => type === "usage")).toBeLessThan(outputs.length - 1);
  const silent = await connect((await startFake({ hidesCachedTokens: true })).url);
  const told = await collect(silent.generate(generateRequest(PROMPT)));
  expect(told.filter(({ type }) => type === "usage")).toEqual([]);
});

it("fans out choices: seed + index, the others once the first has computed the prompt", async () => {
  const fake = await startFake({ pace: 5 });
  const replica = await connect(fake.url);
  fake.completions.length = 0;
  const outputs: EngineOutput[] = [];
  const seenBefore: number[] = [];
  fake.prank = () => {
    seenBefore.push(outputs.length);
    return false;
  };
  const generation = replica.generate(generateRequest(PROMPT, { seed: 41n, temperature: 1 }, { n: 3 }));
  for await (const output of generation) outputs.push(output);
  expect(fake.completions.map(({ seed, n }) => [seed, n])).toEqual([41, 42, 43].map((seed) => [seed, 1]));
  expect(new Set(fake.completions.map(({ request_id }) => request_id)).size).toBe(3);
  expect(seenBefore.map((count) => count > 0)).toEqual([false, true, true]);
});

it("maps EOS to null and other stop ids to themselves", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const [first, second] = expected(fake, PROMPT, 2) as [number, number];
  const run = (sampling: object) => collect(replica.generate(generateRequest(PROMPT, sampling)));
  expect(finishOf(await run({ eosTokenId: second }))).toEqual({ reason: "stop", stopReason: null });
  expect(finishOf(await run({ stopTokenIds: [first] }))).toEqual({ reason: "stop", stopReason: first });
  const ignored = await run({ eosTokenId: second, ignoreEos: true, stopTokenIds: [second] });
  expect(finishOf(ignored)).toEqual({ reason: "stop", stopReason: second });
});

it("fetches the prompt's log-probabilities before it streams", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.completions.length = 0;
  const outputs = await collect(replica.generate(generateRequest([5, 9], { promptLogprobs: 1 }, { n: 2 })));
  expect(prefillOf(outputs).promptLogprobs).toEqual([null, { logprob: -3, rank: 7, topIds: [10], topLogprobs: [-1] }]);
  expect(fake.completions.map(({ stream, max_tokens }) => [stream, max_tokens])).toEqual([
    [false, 1],
    [true, 8],
    [true, 8],
  ]);
});

it.each([
  [502, "<html>Bad Gateway</html>", "lost", "<html>Bad Gateway</html>"],
  [503, "", "lost", "status 503"],
  [401, '{"error":"Unauthorized"}', undefined, "status 401"],
  [200, "<html>hello</html>", undefined, "no log-probabilities of the prompt"],
])(
  "looks at the status of the prompt's log-probabilities before the body: %i %s",
  async (status, text, fault, message) => {
    const fake = await startFake();
    const replica = await connect(fake.url);
    fake.prank = (_, response) => {
      response.writeHead(status).end(text);
      return true;
    };
    const finish = finishOf(await collect(replica.generate(generateRequest([5, 9], { promptLogprobs: 1 }))))!;
    expect(finish.fault).toBe(fault);
    expect(finish.message).toContain(message);
  },
);

it("stops one choice by closing its connection", async () => {
  const fake = await startFake({ pace: 10 });
  const replica = await connect(fake.url);
  const generation = replica.generate(generateRequest([5], { maxTokens: 40 }, { n: 2 }));
  const outputs: EngineOutput[] = [];
  for await (const output of generation) {
    outputs.push(output);
    if (output.type === "tokens" && output.index === 0) generation.stop(0);
  }
  expect(finishOf(outputs, 1)?.reason).toBe("length");
  expect(tokensOf(outputs, 0).length).toBeLessThan(40);
  await expect.poll(() => fake.aborted).toBe(1);
});

it("aborts everything", async () => {
  const fake = await startFake({ pace: 10 });
  const replica = await connect(fake.url);
  const generation = replica.generate(generateRequest([5], { maxTokens: 40 }, { n: 2 }));
  for await (const output of generation) if (output.type === "tokens") break;
  await expect.poll(() => fake.aborted).toBe(2);
});

it("reports a choice as lost when its stream breaks, with the tokens so far", async () => {
  const fake = await startFake({ pace: 10 });
  const replica = await connect(fake.url);
  const outputs: EngineOutput[] = [];
  for await (const output of replica.generate(generateRequest(PROMPT, { maxTokens: 40 }))) {
    outputs.push(output);
    if (tokensOf(outputs).length === 3) fake.cutConnections();
  }
  expect(finishOf(outputs)).toMatchObject({ reason: "error", fault: "lost" });
  const tokens = tokensOf(outputs);
  expect(tokens).toEqual(expected(fake, PROMPT, tokens.length));
});

it("takes a stream that ends without a finish reason for a broken one", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.prank = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end('data: {"choices":[{"index":0,"text":"","token_ids":[7],"finish_reason":null}]}\n\ndata: [DONE]\n\n');
    return true;
  };
  const outputs = await collect(replica.generate(generateRequest([5])));
  expect([tokensOf(outputs), finishOf(outputs)]).toMatchObject([[7], { reason: "error", fault: "lost" }]);
});

it("tells apart errors inside a stream and before it", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const answer = (status: number, error: object, inStream: boolean) => {
    fake.prank = (_, response) => {
      if (inStream) response.writeHead(200, { "content-type": "text/event-stream" });
      else response.writeHead(status, { "content-type": "application/json" });
      response.end(inStream ? `data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n` : JSON.stringify({ error }));
      return true;
    };
    return collect(replica.generate(generateRequest([5]))).then((outputs) => finishOf(outputs)!);
  };
  expect(await answer(200, { message: "EngineCore encountered an issue", code: 500 }, true)).toMatchObject({
    fault: "lost",
  });
  expect(await answer(200, { message: "größer", code: 400 }, true)).toMatchObject({ fault: "refused" });
  expect((await answer(200, { message: "größer", code: 400 }, true)).message).toContain("größer");
  expect(await answer(503, { message: "busy", code: 503 }, false)).toMatchObject({ fault: "lost" });
  expect(await answer(400, { message: "no such field", code: 400 }, false)).toMatchObject({
    fault: "refused",
    message: "The engine behind this server (vLLM 0.27) refuses the request: no such field",
  });
  expect((await answer(401, { message: "Unauthorized" }, false)).fault).toBeUndefined();
});

it("does not call a request lost that vLLM gave up for the request's own sake", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const constraint = { shape: { kind: "choice", choices: ["yes"] }, reasoning: null } as const;
  const finishWith = (message: string, sampling: object, more: object) => {
    fake.prank = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const error = { message, type: "InternalServerError", param: null, code: 500 };
      response.end(`data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`);
      return true;
    };
    return collect(replica.generate(generateRequest([5], sampling, more))).then((outputs) => finishOf(outputs)!);
  };
  // The constraint refused a token that the other controls left.
  const contradictory = await finishWith(
    "Internal server error",
    { allowedTokenIds: [7], minTokens: 2 },
    { constraint },
  );
  expect(contradictory.fault).toBe("contradiction");
  expect(contradictory.message).toContain(
    "position 0: the structured-output constraint, allowed_token_ids, min_tokens together forbid every one.",
  );
  expect((await finishWith("Internal server error", {}, { constraint })).fault).toBe("constraint");
  // Its grammar compiler raised, or something else did.
  expect(await finishWith("", {}, { constraint })).toMatchObject({
    fault: "refused",
    message: expect.stringContaining("without a reason"),
  });
  expect((await finishWith("", {}, {})).fault).toBeUndefined();
  expect((await finishWith("Internal server error", {}, {})).fault).toBeUndefined();
  // A transfer of keys and values may succeed elsewhere.
  const extra = { kvTransferParams: { do_remote_prefill: true } };
  expect((await finishWith("Internal server error", {}, { extra })).fault).toBe("lost");
});

it("refuses what vLLM has no words for, and goes on", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const json = { compact: false, closedObjects: false, whitespacePattern: " ?" };
  const constraint = { shape: { kind: "json_object", json }, reasoning: null } as const;
  const finish = finishOf(await collect(replica.generate(generateRequest([5], {}, { constraint }))))!;
  expect(finish.fault).toBe("refused");
  expect(finish.message).toContain("(vLLM 0.27) cannot do what structured_outputs.whitespace_pattern asks for");
  expect(finishOf(await collect(replica.generate(generateRequest([5]))))!.reason).toBe("length");
});

it("does not send a request whose controls leave no first token, which vLLM would answer with any", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const finishWith = async (sampling: object) =>
    finishOf(await collect(replica.generate(generateRequest([5], sampling, { n: 2 }))))!;
  const before = fake.completions.length;
  expect(await finishWith({ allowedTokenIds: [7, 8], badWords: [[7], [8]] })).toMatchObject({
    fault: "contradiction",
    message: expect.stringContaining("position 0: allowed_token_ids, bad_words together"),
  });
  const ends = { allowedTokenIds: [2], minTokensMask: [2] };
  expect((await finishWith({ ...ends, minTokens: 3 })).message).toContain("allowed_token_ids, min_tokens");
  expect(fake.completions.length).toBe(before);
  expect((await finishWith(ends)).reason).toBe("length");
  expect((await finishWith({ allowedTokenIds: [7, 8], badWords: [[7], [8, 9]] })).reason).toBe("length");
});

it("refuses more log-probabilities than the server gives, in its own words", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const finish = finishOf(await collect(replica.generate(generateRequest([5], { logprobs: -1 }, { n: 3 }))))!;
  expect(finish.fault).toBe("refused");
  expect(finish.message).toContain("--max-logprobs is smaller");
});

it("sends a request again, once, when a kept connection turns out to be closed", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  await collect(replica.generate(generateRequest([5])));
  const before = fake.completions.length;
  fake.prank = (_, response, number) => {
    if (number !== before + 1) return false;
    response.socket!.resetAndDestroy(); // before the first byte
    return true;
  };
  const outputs = await collect(replica.generate(generateRequest([6])));
  expect(tokensOf(outputs)).toEqual(expected(fake, [6], 8));
  expect(fake.completions.length).toBe(before + 2);
});

it("loses everything when the server falls silent or is replaced, and comes back", async () => {
  const fake = await startFake({ pace: 50 });
  const replica = await connect(fake.url, null, 300);
  const running = collect(replica.generate(generateRequest([5], { maxTokens: 1000 })));
  const { identity } = replica;
  fake.startedAt += 100;
  expect(finishOf(await running)).toMatchObject({ fault: "lost" });
  await expect.poll(() => replica.identity).not.toBe(identity);
  const { port } = fake;
  await fake.close();
  opened.splice(opened.indexOf(fake), 1);
  await expect.poll(() => replica.state).toBe("away");
  await startFake({}, port);
  await expect.poll(() => replica.state).toBe("ready");
});

it("does not blame a server for a time in which this process stood still", async () => {
  const fake = await startFake({ pace: 5 });
  const replica = await connect(fake.url, null, 300);
  const generation = replica.generate(generateRequest([5], { maxTokens: 40 }));
  const outputs: EngineOutput[] = [];
  for await (const output of generation) {
    outputs.push(output);
    if (tokensOf(outputs).length === 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  }
  expect(finishOf(outputs)).toMatchObject({ reason: "length" });
});

it("drains a server that says it is not healthy", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.healthy = false;
  await expect.poll(() => replica.state).toBe("draining");
  fake.healthy = true;
  await expect.poll(() => replica.state).toBe("ready");
});

it("loads adapters under the name of their content, once more when they are not visible yet", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.loadErrors = [{ status: 404, message: "No adapter found for /shared/a" }];
  await replica.loadAdapter("abc", "/shared/a");
  await replica.loadAdapter("abc", "/shared/a"); // "already loaded" is a success
  expect(fake.loads.map(({ lora_name }) => lora_name)).toEqual(["fw-a-abc", "fw-a-abc", "fw-a-abc"]);
  expect(tokensOf(await collect(replica.generate(generateRequest([5], {}, { adapter: "abc" })))).length).toBe(8);
  expect(fake.completions.at(-1)!.model).toBe("fw-a-abc");
  await replica.unloadAdapter("abc");
  const outputs = await collect(replica.generate(generateRequest([5], {}, { adapter: "abc" })));
  expect(finishOf(outputs)?.fault).toBe("unloaded");
});

const FULL = { status: 400, message: "no free slot" };

it("makes room by unloading what an earlier run of this server left", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.adapters.set("fw-a-old", "/shared/old").set("theirs", "/shared/theirs");
  fake.loadErrors = [FULL];
  await replica.loadAdapter("new", "/shared/new");
  expect([...fake.adapters.keys()]).toEqual(["theirs", "fw-a-new"]);
});

it("unloads no adapter that another server uses, only what one left that is gone", async () => {
  const fake = await startFake();
  const [a, b] = [await connect(fake.url), await connect(fake.url, null, 60_000, "b")];
  await a.loadAdapter("same", "/shared/same");
  await b.loadAdapter("same", "/shared/same");
  await b.loadAdapter("other", "/shared/other");
  await a.unloadAdapter("same");
  expect([...fake.adapters.keys()]).toEqual(["fw-b-same", "fw-b-other"]);
  fake.loadErrors = [FULL];
  await expect(a.loadAdapter("new", "/shared/new")).rejects.toThrow("no free slot");
  expect([...fake.adapters.keys()]).toEqual(["fw-b-same", "fw-b-other"]);
  fake.idle.set("fw-b-same", 61).set("fw-b-other", 59);
  fake.loadErrors = [FULL];
  await a.loadAdapter("new", "/shared/new");
  expect([...fake.adapters.keys()]).toEqual(["fw-b-other", "fw-a-new"]);
});

it("unloads nothing when a load fails for another reason", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  fake.adapters.set("fw-other", "/shared/other"); // perhaps of a second server in front of the same engine
  fake.loadErrors = [{ status: 400, message: "rank 64 is too large" }];
  await expect(replica.loadAdapter("large", "/shared/large")).rejects.toThrow("rank 64 is too large");
  expect([...fake.adapters.keys()]).toEqual(["fw-other"]);
});

it("asks for a whole reply where a transfer of keys and values begins", async () => {
  const fake = await startFake();
  const replica = await connect(fake.url);
  const extra = { kvTransferParams: { do_remote_decode: true }, engineArgs: { a: 1 } };
  const outputs = await collect(replica.generate(generateRequest([5], { maxTokens: 1 }, { extra })));
  expect(finishOf(outputs)).toEqual({
    reason: "length",
    stopReason: null,
    kvTransferParams: { remote_block_ids: [1, 2] },
  });
  expect(fake.completions.at(-1)).toMatchObject({
    stream: false,
    kv_transfer_params: { do_remote_decode: true },
    vllm_xargs: { a: 1 },
  });
});
