// Replies that are not streamed collect their log-probabilities, and a client may ask for several of the largest at once, and
// read none. What they take together is bounded, so a server with a small heap lives on.
import { afterAll, beforeAll, expect, it } from "vitest";
import { KEY, OTHER_KEY, startVictim, type Victim } from "./victim.ts";

const MOST_RESIDENT = 1.4 * 2 ** 30;
/** Of one reply. */
const MOST_LOGPROBS = 2_000_000;
/** Of the victim's model. */
const VOCABULARY = 256;

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({ heap: 1024, args: ["--max-logprobs", "-1", "--max-num-seqs", "64"] });
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
