// Draws examples for the last stage, a supervised training job of the service. More than half are requests for JSON, tool calls
// and passages, which freely worded prompts need most. A job takes only messages and tools, so conversations with documents or
// thinking are left out.

import { wire } from "./chat-api.ts";
import type { Conversation, Tool } from "./tasks/conversation.ts";
import { conversation, drawOf } from "./tasks/families.ts";
import { freeJson } from "./tasks/free-json.ts";
import { freeTool } from "./tasks/free-tools.ts";
import { passage } from "./tasks/passage.ts";
import { Rng } from "./tasks/rng.ts";
import { wordTool } from "./tasks/word-tools.ts";

export interface Example {
  messages: Record<string, unknown>[];
  tools?: Tool[];
}

export function* finishExamples(seed: string, count: number): Generator<Example> {
  for (let index = 0, made = 0; made < count; index++) {
    const drawn = drawOne(seed, index);
    if (drawn.documents !== undefined || drawn.messages.some((message) => message.reasoning !== undefined)) continue;
    made++;
    yield { messages: drawn.messages.map(wire), ...(drawn.tools === undefined ? {} : { tools: drawn.tools }) };
  }
}

function drawOne(seed: string, index: number): Conversation {
  const rng = new Rng(`${seed}/finish/${index}`);
  const make = rng.weighted([
    [freeJson, 14],
    [freeTool, 14],
    [wordTool, 24],
    [passage, 14],
    [null, 34],
  ] as const);
  return make === null ? conversation(`${seed}-finish`, "train", index) : drawOf(make, { rng, split: "train" });
}
