// Constrained requests over HTTP on an engine with too little memory: choices are preempted and recomputed, prefixes come
// from the cache, priorities reorder the queue. Every request must get what it gets alone on a server.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";

const checkpoint = fileURLToPath(new URL("../fixtures/llama", import.meta.url));
/** The fixture has 2 layers, keys and values, 2 heads, 16 numbers of 4 bytes. */
const BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4;
const CONTEXT = 384;

// biome-ignore lint/suspicious/noExplicitAny: replies are read without a schema
type Loose = any;

let folder: string;
let roomy: StartedServer;
let tight: StartedServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pressure-"));
  const start = (name: string, kvCacheMemoryBytes: number | null) =>
    startServer(
      loadConfig({
        env: {},
        flags: {
          model: checkpoint,
          port: 0,
          data: join(folder, name),
          apiKey: ["k"],
          logLevel: "error",
          maxModelLen: CONTEXT,
          maxNumSeqs: 12,
          blockSize: 16,
          ...(kvCacheMemoryBytes === null ? {} : { kvCacheMemoryBytes }),
        },
      }),
      loadModel,
    );
  roomy = await start("roomy", null);
  // Not quite enough for two of the longest requests.
  tight = await start("tight", Math.floor(1.8 * CONTEXT) * BYTES_PER_TOKEN);
});

afterAll(async () => {
  await Promise.all([roomy?.close(), tight?.close()]);
  rmSync(folder, { recursive: true, force: true });
});

const schema = {
  type: "object",
  properties: {
    id: { type: "string", pattern: "^[A-Z]{3}-\\d{3}$" },
    words: { type: "array", items: { type: "string", minLength: 3, maxLength: 6 }, minItems: 4, maxItems: 6 },
    ok: { type: "boolean" },
  },
  required: ["id", "words", "ok"],
  additionalProperties: false,
};
const isRecord = new Ajv2020({ strict: false }).compile(schema);
const kinds: { fields: Record<string, unknown>; conforms: (text: string) => boolean }[] = [
  {
    fields: { response_format: { type: "json_schema", json_schema: { name: "r", schema } } },
    conforms: (t) => isRecord(JSON.parse(t)),
  },
  { fields: { structured_outputs: { regex: "[a-f]{60,90}!" } }, conforms: (t) => /^[a-f]{60,90}!$/.test(t) },
  {
    fields: { structured_outputs: { choice: ["left ".repeat(12), "right ".repeat(12)] } },
    conforms: (t) => /^(left |right ){12}$/.test(t),
  },
  { fields: {}, conforms: () => true },
];

/** Only four different system messages, so that later conversations find theirs in the cache. */
const system = (i: number) => `You are number ${i % 4} and you answer in the form you are asked for, nothing else.`;
const requests = Array.from({ length: 24 }, (_, i) => ({
  conforms: kinds[i % kinds.length]!.conforms,
  body: {
    ...kinds[i % kinds.length]!.fields,
    messages: [
      { role: "system", content: system(i) },
      { role: "user", content: `Question ${i}` },
    ],
    seed: 100 + i,
    temperature: 1.2,
    n: 1 + (i % 2),
    max_tokens: 180,
    return_token_ids: true,
    logprobs: true,
  },
}));

async function post(server: StartedServer, body: unknown): Promise<Loose> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer k", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const reply = await response.json();
  expect(response.status, JSON.stringify(reply)).toBe(200);
  return reply;
}

const shown = (reply: Loose) =>
  reply.choices.map(({ message, finish_reason, token_ids }: Loose) => ({
    content: message.content,
    finish_reason,
    token_ids,
  }));

test("gives the same conforming output under memory pressure as alone", async () => {
  const alone: Loose[] = [];
  for (const { body } of requests) alone.push(await post(roomy, body));
  for (const round of [0, 1]) {
    const together = await Promise.all(
      requests.map(({ body }, i) => post(tight, { ...body, priority: ((i * 7) % 5) - 2 })),
    );
    together.forEach((reply, i) => {
      expect(shown(reply), `request ${i}, round ${round}`).toEqual(shown(alone[i]));
      for (const choice of reply.choices) {
        if (choice.finish_reason === "stop") expect(requests[i]!.conforms(choice.message.content)).toBe(true);
        expect(choice.logprobs.content).toHaveLength(choice.token_ids.length);
      }
    });
  }
  const stats = tight.service.engine.stats();
  expect(stats.preemptions).toBeGreaterThan(0);
  expect(stats.prefixHits).toBeGreaterThan(0);
  expect(stats).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
  const ended = alone.flatMap((reply) => reply.choices).filter((choice) => choice.finish_reason === "stop");
  expect(ended.length).toBeGreaterThan(12);
});
