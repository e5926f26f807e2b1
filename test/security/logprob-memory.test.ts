// Replies that are not streamed collect their log-probabilities, and a client may ask for several of the largest at once, and
// read none. Streams keep what their clients do not read. What they take together is bounded, so a server with a small heap lives on.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { KEY, OTHER_KEY, startVictim, type Victim } from "./victim.ts";

const MOST_RESIDENT = 1.4 * 2 ** 30;
/** Of one reply. */
const MOST_LOGPROBS = 2_000_000;
/** Of the victim's model. */
const VOCABULARY = 256;

/** How long a header takes is not asked here, however busy the machine is. */
const ARGS = ["--max-logprobs", "-1", "--max-num-seqs", "64", "--header-timeout", "120"];

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({ heap: 1024, args: ARGS });
});
afterAll(() => victim.stop());

const CHOICES = 16;
const TOKENS = Math.floor(MOST_LOGPROBS / CHOICES / (VOCABULARY + 1));

const LARGEST = {
  ...{ messages: [{ role: "user", content: "x" }], logprobs: true, top_logprobs: -1 },
  ...{ temperature: 1, ignore_eos: true, max_tokens: TOKENS, n: CHOICES },
};

it("survives five of the largest replies at once, and one that nobody reads", async () => {
  const ask = async (key: string) => {
    const reply = await victim.request("POST", "/v1/chat/completions", LARGEST, { authorization: `Bearer ${key}` });
    if (reply.status !== 200) await reply.text();
    return reply; // its body stays unread
  };
  const replies = await Promise.all([KEY, OTHER_KEY, KEY, OTHER_KEY, KEY].map(ask));
  const statuses = replies.map(({ status }) => status);
  // one fits, and who has none is told to come again
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 429)).toHaveLength(4);
  for (const reply of replies) if (reply.status === 429) expect(reply.headers.get("retry-after")).toBe("1");
  // while the client has not read its reply, there is no room for another
  expect((await ask(OTHER_KEY)).status).toBe(429);
  for (const reply of replies) if (!reply.bodyUsed) await reply.body!.pipeTo(new WritableStream());
  expect(victim.memory().peak).toBeLessThan(MOST_RESIDENT);
  // small ones have room again
  const small = { prompt: [5], max_tokens: 1, logprobs: 1 };
  expect((await victim.request("POST", "/v1/completions", small)).status).toBe(200);
});

const sampling = { temperature: 1, ignore_eos: true };
const ids = Array.from({ length: TOKENS }, (_, i) => 1 + (i % 200));
const OTHERS: Record<string, { path: string; body: Record<string, unknown> }> = {
  "completions, of their tokens": {
    path: "/v1/completions",
    body: { ...sampling, prompt: [5], logprobs: VOCABULARY - 1, max_tokens: TOKENS, n: CHOICES },
  },
  "completions, of the prompt": {
    path: "/v1/completions",
    body: { ...sampling, prompt: ids, prompt_logprobs: -1, max_tokens: 1, n: CHOICES },
  },
  "completions, of an echoed prompt": {
    path: "/v1/completions",
    body: { ...sampling, prompt: ids, logprobs: VOCABULARY - 1, echo: true, max_tokens: 1, n: CHOICES / 2 - 1 },
  },
  generate: {
    path: "/inference/v1/generate",
    body: { token_ids: [5], sampling_params: { ...sampling, logprobs: -1, max_tokens: TOKENS, n: CHOICES } },
  },
  "generate, of the prompt": {
    path: "/inference/v1/generate",
    body: { token_ids: ids, sampling_params: { ...sampling, prompt_logprobs: -1, max_tokens: 1 } },
  },
  responses: {
    path: "/v1/responses",
    body: {
      ...{ input: "x", include: ["message.output_text.logprobs"], top_logprobs: VOCABULARY - 1 },
      max_output_tokens: 480,
    },
  },
};

it.each(Object.keys(OTHERS))(
  "survives five of the largest at once: %s",
  async (name) => {
    const { path, body } = OTHERS[name]!;
    const ask = (key: string) => victim.request("POST", path, body, { authorization: `Bearer ${key}` });
    const replies = await Promise.all([KEY, OTHER_KEY, KEY, OTHER_KEY, KEY].map(ask));
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(statuses).toContain(200);
    for (const reply of replies) await reply.body!.pipeTo(new WritableStream());
    expect(victim.memory().peak).toBeLessThan(MOST_RESIDENT);
  },
  120_000,
);

it("refuses more than a reply may hold, copies of the prompt for each choice included", async () => {
  const { path, body } = OTHERS["completions, of the prompt"]!;
  expect((await victim.request("POST", path, { ...body, n: CHOICES + 2 })).status).toBe(400);
  const echoed = OTHERS["completions, of an echoed prompt"]!;
  expect((await victim.request("POST", echoed.path, { ...echoed.body, n: CHOICES })).status).toBe(400);
});

/** A stream with ten times as much as it may hold back. */
const SLOW = { n: 4, max_tokens: 120 };

it("survives streams that nobody reads", async () => {
  const leaving = new AbortController();
  const bodies = [
    ["/v1/chat/completions", { ...LARGEST, ...SLOW }],
    ["/v1/completions", { ...OTHERS["completions, of their tokens"]!.body, ...SLOW }],
    ["/v1/responses", { ...OTHERS.responses!.body, max_output_tokens: SLOW.max_tokens }],
  ] as const;
  const asked = Array.from({ length: 18 }, (_, i) => {
    const [path, body] = bodies[i % 3]!;
    return victim.request("POST", path, { ...body, stream: true }, {}, leaving.signal).catch(() => null);
  });
  const replies = await Promise.all(asked);
  expect(replies.some((reply) => reply?.status === 200)).toBe(true);
  // until the server has given up all of them, or has nothing more to say
  await expect
    .poll(async () => (await (await victim.request("GET", "/load")).json()).server_load, { timeout: 100_000 })
    .toBe(0);
  expect(victim.memory().peak).toBeLessThan(MOST_RESIDENT);
  leaving.abort();
  expect((await victim.request("GET", "/health")).status).toBe(200);
}, 120_000);

it("bounds those of the local key too", async () => {
  const { token } = JSON.parse(readFileSync(join(victim.data, "local-key.json"), "utf8"));
  const ask = () => victim.request("POST", "/v1/chat/completions", LARGEST, { authorization: `Bearer ${token}` });
  const replies = await Promise.all(Array.from({ length: 5 }, ask));
  const statuses = replies.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, 429, 429, 429, 429]);
  for (const reply of replies) await reply.body!.pipeTo(new WritableStream());
  expect(victim.memory().peak).toBeLessThan(MOST_RESIDENT);
}, 120_000);
