// `npm run eval:mini`: scores a served model over its HTTP API on the held-out and the hand-written cases and prints the
// score table. Without --base-url it starts the service with the bundled model.
//   --serve MODEL     what to start the service with (default: bundled)   --dtype int8|float32
//   --base-url URL --api-key KEY --model NAME      a server that runs already
//   --per-task N      generated cases per task (default 100)              --tasks a,b   only these
//   --samples FILE    also write replies to 40 free chats at temperature 0.7
//   --heldout FILE    also bits per byte on heldout.jsonl of pack_text.py  --speed       also two timings
//   --failures        print every case that was not right

import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { chatPrompts, handCases, heldOutCases, type TestCase } from "./cases.ts";
import { type Endpoint, replyTo, speed, textLogprob } from "./chat-api.ts";
import { type Grade, grade } from "./grade.ts";
import { table, tally } from "./score.ts";
import { serveModel } from "./serve-process.ts";
import { assistant, user } from "./tasks/conversation.ts";

const { values } = parseArgs({
  options: {
    serve: { type: "string", default: "bundled" },
    dtype: { type: "string" },
    "base-url": { type: "string" },
    "api-key": { type: "string" },
    model: { type: "string" },
    "per-task": { type: "string", default: "100" },
    tasks: { type: "string" },
    seed: { type: "string", default: "eval" },
    samples: { type: "string" },
    heldout: { type: "string" },
    speed: { type: "boolean", default: false },
    failures: { type: "boolean", default: false },
  },
});

/** At most `limit` at a time, results in order. */
async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++)
      results[index] = await work(items[index] as T, index);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

async function scores(endpoint: Endpoint): Promise<string> {
  const wanted = values.tasks?.split(",");
  const all: TestCase[] = [...heldOutCases(values.seed, Number(values["per-task"])), ...handCases()];
  const cases = wanted === undefined ? all : all.filter((test) => wanted.includes(test.task));
  const graded = await inParallel(cases, 16, async (test): Promise<{ test: TestCase; grade: Grade }> => {
    const reply = await replyTo(endpoint, test.conversation, { temperature: 0 });
    if (test.conversation.check === undefined) throw new Error(`case ${test.id} has no check`);
    const result = grade(test.conversation.check, reply);
    if (values.failures && !result.pass) {
      const asked = test.conversation.messages[test.conversation.messages.length - 2]?.content;
      console.log(JSON.stringify({ id: test.id, asked, check: test.conversation.check, reply }));
    }
    return { test, grade: result };
  });
  return table(tally(graded));
}

async function samples(endpoint: Endpoint): Promise<string> {
  const replies = await inParallel(chatPrompts(), 4, async (text, index) => {
    const conversation = { family: "chat", messages: [user(text), assistant("")] };
    return replyTo(endpoint, conversation, { temperature: 0.7, seed: index });
  });
  return chatPrompts()
    .map((text, index) => `> ${text}\n\n${replies[index]?.content.trim() || "(empty)"}\n`)
    .join("\n");
}

/** Bits per byte by source: the first `characters` of up to `documents` documents each. */
async function bitsPerByte(endpoint: Endpoint, file: string, documents = 60, characters = 2000): Promise<string> {
  const rows = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as [string, string]);
  const lines = ["| held-out text | documents | bits per byte |", "|---|---:|---:|"];
  for (const source of new Set(rows.map((row) => row[0]))) {
    const texts = rows
      .filter((row) => row[0] === source)
      .slice(0, documents)
      .map((row) => row[1].slice(0, characters));
    const parts = await inParallel(texts, 2, (text) => textLogprob(endpoint, text));
    const nats = parts.reduce((sum, part) => sum - part.logprob, 0);
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    lines.push(`| ${source} | ${texts.length} | ${(nats / Math.LN2 / bytes).toFixed(3)} |`);
  }
  return lines.join("\n");
}

async function timings(endpoint: Endpoint): Promise<string> {
  await speed(endpoint, 200);
  const { decodeSeconds, prefillSeconds, promptTokens } = await speed(endpoint, 200);
  return `200-token reply: ${decodeSeconds.toFixed(2)} s; prompt of ${promptTokens} tokens: ${prefillSeconds.toFixed(2)} s`;
}

async function run(endpoint: Endpoint): Promise<void> {
  if (values.tasks !== "none") console.log(await scores(endpoint));
  if (values.samples !== undefined) writeFileSync(values.samples, await samples(endpoint));
  if (values.heldout !== undefined) console.log(`\n${await bitsPerByte(endpoint, values.heldout)}`);
  if (values.speed) console.log(`\n${await timings(endpoint)}`);
}

if (values["base-url"] !== undefined) {
  const endpoint: Endpoint = { baseUrl: values["base-url"] };
  if (values["api-key"] !== undefined) endpoint.apiKey = values["api-key"];
  if (values.model !== undefined) endpoint.model = values.model;
  await run(endpoint);
} else {
  const server = await serveModel(values.serve, values.dtype === undefined ? [] : ["--dtype", values.dtype]);
  try {
    await run(server);
  } finally {
    await server.stop();
  }
}
