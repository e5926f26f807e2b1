// Fields that are handed on to the engine as they are.
import { describe, expect, it } from "vitest";
import type { GenerateRequest } from "../../../src/engine/contract.ts";
import { babble, sharedServer } from "../../support/shared-server.ts";

const server = sharedServer({ config: { allowedEngineArgs: ["a", "b", "c"] } });

/** What the engine is asked for meanwhile. */
async function requestsDuring(work: () => Promise<unknown>): Promise<GenerateRequest[]> {
  const { engine } = server.service;
  const seen: GenerateRequest[] = [];
  const generate = engine.generate.bind(engine);
  engine.generate = (request) => {
    seen.push(request);
    return generate(request);
  };
  await work();
  engine.generate = generate;
  return seen;
}

describe("fields for the engine", () => {
  it("carries priority and the members of engine_xargs and kv_transfer_params that are allowed", async () => {
    const seen = await requestsDuring(() =>
      server.chat({
        ...babble,
        engine_xargs: { a: 1 },
        vllm_xargs: { a: 2, b: ["x"], not: 1 },
        kv_transfer_params: { c: {}, not: 1 },
        priority: -3,
        cache_salt: "s",
        mm_processor_kwargs: { d: 1 },
      }),
    );
    expect(seen.map((request) => [request.extra, request.priority, request.cacheSalt])).toEqual([
      [
        { engineArgs: { a: 1, b: ["x"] }, kvTransferParams: { c: {} }, mmProcessorKwargs: { d: 1 } },
        -3,
        expect.stringMatching(/^[0-9a-f]{64}$/),
      ],
    ]);
  });

  it.each([
    ["7", 7],
    ["-2", -2],
    ["soon", 5],
    ["1.5", 5],
  ])("takes the priority of the header X-Vllm-Priority: %s", async (header, expected) => {
    const body = { ...babble, max_tokens: 1, priority: 5 };
    const text = { prompt: "a", max_tokens: 1, priority: 5 };
    const seen = await requestsDuring(async () => {
      for (const [path, sent] of [
        ["/v1/chat/completions", body],
        ["/v1/completions", text],
      ] as const) {
        const reply = await server.post(path, sent, { "x-vllm-priority": header });
        expect(reply.status).toBe(200);
      }
    });
    expect(seen.map(({ priority }) => priority)).toEqual([expected, expected]);
  });
});
