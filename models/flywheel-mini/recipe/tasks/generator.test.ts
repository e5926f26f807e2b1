// What the generator guarantees: the same seed gives the same data, the splits share nothing, every reference reply passes its
// own check, and every wording parses.

import { describe, expect, it } from "vitest";
import { heldOutCases } from "../cases.ts";
import { callsInText, grade, withoutThinking } from "../grade.ts";
import { chatPrompts, handCases } from "../hand-cases.ts";
import { renderPrompt, renderTraining } from "../render.ts";
import { pairKey, resultOf, workOut } from "./arithmetic.ts";
import { asksOf, openIntents, shortAnswers, talkIntents, topics } from "./bank.ts";
import { type Conversation, type Message, promptKey } from "./conversation.ts";
import { conversation } from "./families.ts";
import { oneWordFormats } from "./one-word.ts";
import { Rng } from "./rng.ts";
import { splitOf } from "./split.ts";
import { say } from "./wording.ts";

const sample = (split: "train" | "heldout", count: number): Conversation[] =>
  Array.from({ length: count }, (_, index) => conversation("test", split, index));
const train = sample("train", 3000);
const heldout = sample("heldout", 1000);

describe("conversation", () => {
  it("is the same for the same seed and index, and different for another seed", () => {
    expect(conversation("a", "train", 5)).toEqual(conversation("a", "train", 5));
    const texts = (seed: string) =>
      Array.from({ length: 20 }, (_, i) => renderTraining(conversation(seed, "train", i)));
    expect(texts("a")).not.toEqual(texts("b"));
  });

  it("keeps the prompts of the two splits apart", () => {
    expect(train.every((made) => splitOf(promptKey(made)) === "train")).toBe(true);
    expect(heldout.every((made) => splitOf(promptKey(made)) === "heldout")).toBe(true);
    const known = new Set(train.map(promptKey));
    expect(heldout.filter((made) => known.has(promptKey(made)))).toEqual([]);
  });

  it("never uses a held-out question as one turn of a longer training conversation", () => {
    const asked = (made: Conversation) => made.messages.filter((message) => message.role === "user");
    const single = new Set(heldout.filter((made) => asked(made).length === 1).map(promptKey));
    const turns = sample("train", 12000)
      .filter((made) => asked(made).length > 1)
      .flatMap((made) => asked(made).map((message) => promptKey({ family: "", messages: [message] })));
    expect(turns.filter((turn) => single.has(turn))).toEqual([]);
  });

  it("alternates user and assistant and ends with a reply", () => {
    for (const made of [...train, ...heldout]) {
      const roles = made.messages
        .map((message) => message.role)
        .filter((role) => role !== "system" && role !== "developer");
      expect(roles[0]).toBe("user");
      expect(roles[roles.length - 1]).toBe("assistant");
      for (let i = 1; i < roles.length; i++) expect(roles[i]).not.toBe(roles[i - 1]);
    }
  });

  it("uses many wordings: few prompts repeat", () => {
    expect(new Set(train.map(promptKey)).size).toBeGreaterThan(0.93 * train.length);
  });

  it("leaves no unread wording mark in the text", () => {
    for (const made of train) {
      const marks = made.messages
        .map((message) => message.content ?? "")
        .filter((text) => /\$[a-z]|\{[A-Za-z ]+\|/.test(text));
      if (marks.length > 0) expect(marks).toEqual([]);
    }
  });
});

describe("checks", () => {
  it("accept the reference reply", () => {
    const cases = [...heldOutCases("test", 40).map((test) => test.conversation), ...heldout, ...train];
    for (const made of cases) {
      if (made.check === undefined) continue;
      const { format, pass } = grade(made.check, referenceReply(made));
      if (!format || !pass) expect(made, "the reference reply fails its own check").toBeUndefined();
    }
  });

  it("hand-written prompts are not training prompts, and use held-out number pairs", () => {
    const hand = handCases();
    expect(hand.filter((test) => test.source === "reworded").length).toBeGreaterThanOrEqual(300);
    const known = new Set(train.map(promptKey));
    for (const test of hand) {
      expect(known.has(promptKey(test.conversation))).toBe(false);
      expect(test.conversation.check).toBeDefined();
      if (!test.task.startsWith("add-")) continue;
      const [a, b] = (test.conversation.messages[0]?.content ?? "").match(/\d+/g)?.map(Number) ?? [];
      expect(splitOf(pairKey("+", a as number, b as number))).toBe("heldout");
      expect(test.conversation.check).toEqual({ kind: "number", value: (a as number) + (b as number) });
    }
  });
});

describe("sample prompts", () => {
  it("are forty, and no training prompts", () => {
    const ask = (text: string) => promptKey({ family: "", messages: [{ role: "user", content: text }] });
    const known = new Set(train.map(promptKey));
    expect(new Set(chatPrompts()).size).toBe(40);
    expect(chatPrompts().filter((text) => known.has(ask(text)))).toEqual([]);
  });
});

describe("extraction", () => {
  it("always shows the text that the values come from", () => {
    for (const { check, messages, documents } of [...train, ...heldout].filter(({ family }) => family === "extract")) {
      const shown = JSON.stringify([messages.slice(0, -1), documents]).toLowerCase();
      if (check?.kind !== "json") continue;
      for (const value of Object.values(check.values ?? {})) expect(shown).toContain(String(value).toLowerCase());
    }
  });
});

describe("arithmetic", () => {
  it("works out every line correctly", () => {
    const rng = new Rng("columns");
    for (let i = 0; i < 400; i++) {
      const sign = rng.pick(["+", "-", "*"] as const);
      let [a, b] = sign === "*" ? [rng.int(10, 99), rng.int(2, 9)] : [rng.int(0, 999), rng.int(0, 999)];
      if (sign === "-" && a < b) [a, b] = [b, a];
      const lines = workOut(sign, a, b).split("\n");
      expect(lines[lines.length - 1]).toBe(String(resultOf(sign, a, b)));
      for (const [, left, right] of lines.join("\n").matchAll(/([\d +*-]+) = (\d+)/g)) {
        expect(evaluate(left as string)).toBe(Number(right));
      }
    }
  });
});

describe("what is left unlearned", () => {
  it("three-digit addition without thinking is in no training conversation", () => {
    for (const made of train) {
      if (made.check?.kind !== "number") continue;
      const last = made.messages[made.messages.length - 1] as Message;
      const asked = made.messages[made.messages.length - 2]?.content ?? "";
      const [a = 0, b = 0] = asked.match(/\d+/g)?.map(Number) ?? [];
      if (Math.min(a, b) < 100 || made.check.value !== a + b) continue;
      expect(last.reasoning !== undefined || (last.content ?? "").includes("carry"), asked).toBe(true);
    }
  });

  it("format_exercises.py knows where the wordings of asks.txt begin", () => {
    expect(oneWordFormats.slice(15)).toEqual([...asksOf("one-word"), ...asksOf("one-word-parts")]);
  });
});

describe("render", () => {
  it("the prompt is the beginning of the training text, so history extends itself", () => {
    for (const made of train.filter((one) => one.thinking !== true).slice(0, 300)) {
      expect(renderTraining(made).startsWith(renderPrompt(made))).toBe(true);
    }
  });
});

describe("banks", () => {
  it("are complete", () => {
    const rng = new Rng("banks");
    for (const topic of topics) expect(topic.facts.length, topic.single).toBeGreaterThan(0);
    for (const intent of [...talkIntents, ...openIntents]) {
      expect(intent.prompts.length, intent.name).toBeGreaterThan(0);
      expect(intent.replies.length, intent.name).toBeGreaterThan(0);
      for (const wording of [...intent.prompts, ...intent.replies]) expect(say(rng, wording)).not.toBe("");
    }
    for (const [question, answer, sentence] of shortAnswers) {
      expect(question).toMatch(/\?$/);
      expect(answer).not.toMatch(/\s/);
      expect(sentence).toMatch(/\.$/);
    }
  });
});

function referenceReply(made: Conversation) {
  const last = made.messages[made.messages.length - 1] as Message;
  const rendered = renderTraining(made);
  const tail = withoutThinking(rendered.slice(rendered.lastIndexOf("<|im_start|>assistant\n"))).replace(
    /<\|im_end\|>\n?$/,
    "",
  );
  const calls = last.tool_calls?.map((call) => call.function);
  if (calls !== undefined) expect(callsInText(tail)).toEqual(calls);
  return calls === undefined ? { content: last.content ?? "" } : { content: "", toolCalls: calls };
}

/** Evaluates + - * of small numbers from left to right, which is all the written method uses. */
function evaluate(text: string): number {
  const parts = text.trim().split(/\s+/);
  let value = Number(parts[0]);
  for (let i = 1; i + 1 < parts.length; i += 2)
    value = resultOf(parts[i] as "+" | "-" | "*", value, Number(parts[i + 1]));
  return value;
}
