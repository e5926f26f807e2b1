// `npm run eval:mini`: scores the bundled model over the service's HTTP API, greedily, on held-out prompts and on prompts
// written by hand. Prints the score table. Exits with status 1 if a target is missed. It starts the service itself.
//   --serve MODEL     model to start the service with (default: bundled)    --dtype int8|float32 (default: the service's)
//   --base-url URL --api-key KEY --model NAME      use a running server instead
//   --per-task N      held-out cases per task (default 200, which is all) --tasks a,b   only these tasks; none: no scores
//   --failures        print every case that is not right
//   --samples FILE    also write replies to 40 free chats at temperature 0.7, seed = number of the prompt
//   --text FOLDER     also bits per byte on the held-out text of that folder (the data of the recipe, which must be unpacked; needs python3, zstd)
//   --beside MODEL    with --text: another checkpoint on the same text    --speed       also prefill and decode speed

import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { bitsPerByte, bitsTable, heldOutTexts } from "./bits-per-byte.ts";
import { chatPrompts, handCases, heldOutCases, type TestCase } from "./cases.ts";
import { type Endpoint, inParallel, replyTo } from "./endpoint.ts";
import { type Grade, grade } from "./grade.ts";
import { type Scores, scoresOf } from "./score.ts";
import { serveModel } from "./served-model.ts";
import { speedTable } from "./speed.ts";

const { values } = parseArgs({
  options: {
    serve: { type: "string", default: "bundled" },
    dtype: { type: "string" },
    "base-url": { type: "string" },
    "api-key": { type: "string" },
    model: { type: "string" },
    "per-task": { type: "string", default: "200" },
    tasks: { type: "string" },
    failures: { type: "boolean", default: false },
    samples: { type: "string" },
    text: { type: "string" },
    beside: { type: "string" },
    speed: { type: "boolean", default: false },
  },
});

async function scores(endpoint: Endpoint): Promise<Scores> {
  const wanted = values.tasks?.split(",");
  const all: TestCase[] = [...heldOutCases(Number(values["per-task"])), ...handCases()];
  const cases = wanted === undefined ? all : all.filter((test) => wanted.includes(test.task));
  if (cases.length === 0) throw new Error(`--tasks ${values.tasks}: no such task`);
  const graded = await inParallel(cases, 16, async (test): Promise<{ test: TestCase; grade: Grade }> => {
    const reply = await replyTo(endpoint, test, { temperature: 0 });
    const result = grade(test.check, reply);
    if (values.failures && !result.pass) {
      const asked = test.messages.at(-1)?.content;
      console.log(JSON.stringify({ id: test.id, asked, check: test.check, reply }));
    }
    return { test, grade: result };
  });
  return scoresOf(graded);
}

async function samples(endpoint: Endpoint): Promise<string> {
  const prompts = chatPrompts();
  const replies = await inParallel(prompts, 4, async (text, index) => {
    const messages = [{ role: "user" as const, content: text }];
    return replyTo(endpoint, { messages }, { temperature: 0.7, seed: index });
  });
  const parts = prompts.map((text, index) => {
    const reply = replies[index]?.content.trim() || "(empty)";
    return `**${index}. ${text}**\n\n${reply.replace(/^/gm, "> ")}\n`;
  });
  return `# Sample replies of flywheel-mini

The first reply to each of the ${prompts.length} prompts in \`test/mini/chat-prompts.json\`, unedited. Temperature 0.7, the model's own top-p (0.9), no thinking, at
most 220 tokens; the seed is the prompt's number. Written by \`npm run eval:mini -- --tasks none --samples FILE\`.

${parts.join("\n")}`;
}

async function textTable(endpoint: Endpoint, data: string): Promise<string> {
  const texts = heldOutTexts(data);
  const models = [
    {
      name: values.serve === "bundled" ? "flywheel-mini" : basename(values.serve),
      bits: await bitsPerByte(endpoint, texts),
    },
  ];
  if (values.beside !== undefined)
    await withServer(values.beside, async (other) => {
      models.push({ name: basename(values.beside as string), bits: await bitsPerByte(other, texts) });
    });
  return bitsTable(texts, models);
}

async function withServer(model: string, work: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  const server = await serveModel(model, values.dtype === undefined ? [] : ["--dtype", values.dtype]);
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

async function run(endpoint: Endpoint): Promise<void> {
  if (values.tasks !== "none") {
    const { table, missed } = await scores(endpoint);
    console.log(table);
    console.log(missed.length === 0 ? "\nEvery target is met." : `\nMissed:\n${missed.join("\n")}`);
    if (missed.length > 0) process.exitCode = 1;
  }
  if (values.samples !== undefined) writeFileSync(values.samples, await samples(endpoint));
  if (values.text !== undefined) console.log(`\n${await textTable(endpoint, values.text)}`);
  if (values.speed) console.log(`\n${await speedTable(endpoint)}`);
}

if (values["base-url"] === undefined) await withServer(values.serve, run);
else {
  const endpoint: Endpoint = { baseUrl: values["base-url"] };
  if (values["api-key"] !== undefined) endpoint.apiKey = values["api-key"];
  if (values.model !== undefined) endpoint.model = values.model;
  await run(endpoint);
}
