// Writes synthetic chat: `node dist/make-chat.js --split train --count 900000 --seed 1 --out chat.jsonl` writes one rendered
// conversation per line, as a JSON string.
//   --cases N     instead, N held-out cases of every scored family, the hand-written cases and the free chats, with prompts
//   --finish N    instead, N examples for finish.mjs
//   --task NAME   only conversations of one scored family

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { parseArgs } from "node:util";
import { heldOutCases } from "./cases.ts";
import { finishExamples } from "./finish-examples.ts";
import { chatPrompts, handCases } from "./hand-cases.ts";
import { renderPrompt, renderTraining } from "./render.ts";
import { assistant, type Conversation, user } from "./tasks/conversation.ts";
import { conversation, drawOf, scored } from "./tasks/families.ts";
import { Rng } from "./tasks/rng.ts";
import type { Split } from "./tasks/split.ts";

const { values } = parseArgs({
  options: {
    split: { type: "string", default: "train" },
    count: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    out: { type: "string" },
    cases: { type: "string" },
    task: { type: "string" },
    finish: { type: "string" },
  },
});
if (values.out === undefined) throw new Error("--out FILE is needed");
if (values.split !== "train" && values.split !== "heldout")
  throw new Error(`--split must be train or heldout, not ${values.split}`);

const file = createWriteStream(values.out);
async function write(line: unknown): Promise<void> {
  if (!file.write(`${JSON.stringify(line)}\n`)) await once(file, "drain");
}
if (values.cases !== undefined) {
  for (const test of [...heldOutCases(values.seed, Number(values.cases)), ...handCases()]) {
    await write({ ...test, prompt: renderPrompt(test.conversation) });
  }
  for (const [index, text] of chatPrompts().entries()) {
    const chat: Conversation = { family: "chat", messages: [user(text), assistant("")] };
    await write({
      id: `chat-${index}`,
      task: "chat",
      source: "hand",
      conversation: chat,
      temperature: 0.7,
      prompt: renderPrompt(chat),
    });
  }
} else if (values.finish !== undefined) {
  for (const example of finishExamples(values.seed, Number(values.finish))) await write(example);
} else if (values.task !== undefined) {
  const make = scored[values.task];
  if (make === undefined) throw new Error(`--task must be one of ${Object.keys(scored).join(", ")}`);
  for (let index = 0; index < Number(values.count); index++) {
    const rng = new Rng(`${values.seed}/${values.task}/${index}`);
    await write(renderTraining(drawOf(make, { rng, split: values.split as Split })));
  }
} else {
  for (let index = 0; index < Number(values.count); index++) {
    await write(renderTraining(conversation(values.seed, values.split as Split, index)));
  }
}
file.end();
await once(file, "finish");
