// Compares the replica's /tokenize with our tokenizer and chat template. A replica with another tokenizer would read
// every prompt as something else, and its tokens would train the wrong text.
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { encodeChat } from "../../text/prompt.ts";
import { seededRandom } from "../../training/random.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { type Bench, errorText } from "./replica.ts";

// Texts and conversations on which tokenizers and chat templates tend to differ.

const WRITTEN_TEXTS = [
  "Hello, world!",
  " leading space",
  "trailing space ",
  "  two  spaces   inside    and outside  ",
  "\n",
  "\n\n\n",
  "tab\tand\r\ncarriage return",
  "line\nline\n\nline",
  "don't can't we'll I'M it's",
  "3.14159 1,000,000 0x1F 2026-11-17 12:45:00",
  "00000000000000000000",
  "CamelCaseIdentifier snake_case_identifier kebab-case",
  "def f(x):\n    return {'a': [1, 2, 3]}  # comment\n",
  '{"name": "get_weather", "arguments": {"city": "Zürich"}}',
  "<html><body class='x'>&nbsp;</body></html>",
  "naïve café Ærøskøbing straße İstanbul ΑΒΓ Привет",
  "cafe\u0301 \u0041\u030a (combining marks)",
  "ﬁ ① ㎏ Å \u00a0no-break\u00a0space",
  "你好，世界。这是一个测试。",
  "こんにちは世界。カタカナ",
  "안녕하세요 세계",
  "مرحبا بالعالم שלום עולם",
  "नमस्ते दुनिया ไทยไม่มีช่องว่าง",
  "😀 👩‍👩‍👧‍👦 🇨🇭 👍🏽 ✈️",
  "\u200bzero width\u200d \ufeff byte order mark",
  "math: ∑ᵢ xᵢ² ≤ ∞, ∀x∈ℝ",
  "a\u0000b \u0001 \u007f",
  "🙂".repeat(20),
  "ab".repeat(100),
  "     \n     \n",
];

/** Roles of a template written as text: a tokenizer that reads them as special tokens must agree on which. */
const SPECIAL_SPELLINGS = [
  "<think>",
  "</think>",
  "<tool_call>",
  "<s>",
  "</s>",
  "<unk>",
  "<|im_start|>user\nhi<|im_end|>",
];

const RANDOM_TEXTS = 60;

/** The written texts, the model's special tokens inside texts, and random texts that are the same in every run. */
function probeTexts(specialTokens: readonly string[]): string[] {
  const specials = [...new Set([...SPECIAL_SPELLINGS, ...specialTokens])];
  const inside = specials.flatMap((special) => [special, `a ${special} b`, `a${special}${special}b`]);
  return [...WRITTEN_TEXTS, ...inside, ...Array.from({ length: RANDOM_TEXTS }, (_, seed) => randomText(seed + 1))];
}

const ALPHABETS = [
  "abcdefghijklmnop QRSTUVW  \n\t.,;:!?'\"()",
  "0123456789+-*/=<>[]{} ",
  "äöüßéèçñøåлджщяΩλ ",
  "漢字かなカナ한글 ",
  "😀🚀🎉‍️👩 ",
];

function randomText(seed: number): string {
  const random = seededRandom(seed);
  const next = (bound: number) => Math.floor(random() * bound);
  return Array.from({ length: 8 + next(56) }, () => {
    const letters = [...ALPHABETS[next(ALPHABETS.length)]!];
    return letters[next(letters.length)]!;
  }).join("");
}

export interface ProbeConversation {
  name: string;
  messages: readonly { role: string; content: string }[];
  /** Further fields of /tokenize. */
  fields: JsonObject;
}

const USER = { role: "user", content: "What is 2 + 2?" };
const SYSTEM = { role: "system", content: "You are terse.\nAnswer in one word." };
const ASSISTANT = { role: "assistant", content: "Four." };

const PROBE_CONVERSATIONS: readonly ProbeConversation[] = [
  { name: "one message", messages: [USER], fields: {} },
  { name: "a system message", messages: [SYSTEM, USER], fields: {} },
  { name: "several turns", messages: [SYSTEM, USER, ASSISTANT, { role: "user", content: "And 3 + 3?" }], fields: {} },
  { name: "no generation prompt", messages: [USER, ASSISTANT], fields: { add_generation_prompt: false } },
  { name: "spaces around the content", messages: [{ role: "user", content: "  hi  \n" }], fields: {} },
  { name: "Unicode", messages: [{ role: "user", content: "你好 😀 naïve" }], fields: {} },
  { name: "markup in the content", messages: [{ role: "user", content: "{{ x }} {% if %} </s>" }], fields: {} },
];

const SAME_FILES = "Serve the same checkpoint on both sides: compare tokenizer.json and tokenizer_config.json.";

/** Requests that are sent together. */
const AT_ONCE = 16;

export async function* checkText(bench: Bench): AsyncGenerator<Finding> {
  yield await tokenizer(bench);
  if (bench.ours.text.defaultTemplate !== null) yield await chatTemplate(bench);
}

async function tokenizer(bench: Bench): Promise<Finding> {
  const { text } = bench.ours;
  const texts = probeTexts(Object.values(text.specialTokens));
  const asked = texts.flatMap((prompt) => [true, false].map((addSpecialTokens) => ({ prompt, addSpecialTokens })));
  const differing: string[] = [];
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const some = asked.slice(from, from + AT_ONCE);
    const replies = await Promise.all(
      some.map(({ prompt, addSpecialTokens }) => tokenise(bench, { prompt, add_special_tokens: addSpecialTokens })),
    );
    for (const [i, theirs] of replies.entries()) {
      if (typeof theirs === "string") return noTokenize(theirs);
      const { prompt, addSpecialTokens } = some[i]!;
      const ours = text.tokenizer.encode(prompt, { addSpecialTokens });
      if (theirs.join() !== ours.join()) differing.push(difference(JSON.stringify(prompt), ours, theirs));
    }
  }
  if (differing.length === 0) return ok("tokenizer", `the same token ids for ${texts.length} texts`);
  const detail = `${differing.length} of ${asked.length} encodings differ, first ${differing[0]}`;
  return wrong("tokenizer", detail, SAME_FILES);
}

async function chatTemplate(bench: Bench): Promise<Finding> {
  const differing: string[] = [];
  for (const { name, messages, fields } of PROBE_CONVERSATIONS) {
    const theirs = await tokenise(bench, { messages, ...fields });
    if (typeof theirs === "string") {
      differing.push(`${name}: ${theirs}`);
      continue;
    }
    const ours = await encodeChat(bench.ours.text, {
      messages: messages.map(({ role, content }) => ({ role, texts: [content] })),
      addGenerationPrompt: fields.add_generation_prompt !== false,
    });
    if (theirs.join() !== ours.join()) differing.push(difference(name, ours, theirs));
  }
  const count = PROBE_CONVERSATIONS.length;
  if (differing.length === 0) return ok("chat-template", `the same prompts for ${count} conversations`);
  const advice =
    "Flywheel renders conversations itself, so its replies are right. Give both sides the same --chat-template if others call the replica.";
  return warning("chat-template", `${differing.length} of ${count} prompts differ, first ${differing[0]}`, advice);
}

function noTokenize(reason: string): Finding {
  const advice = "Flywheel works without /tokenize, but nothing shows that both sides have the same tokenizer.";
  return warning("tokenizer", `/tokenize: ${reason}`, advice);
}

/** Token ids, or why there are none. */
async function tokenise({ replica, served }: Bench, fields: Record<string, unknown>): Promise<number[] | string> {
  const { status, body } = await replica.post("/tokenize", { model: served.name, ...fields });
  const tokens = isJsonObject(body) ? body.tokens : null;
  return status === 200 && Array.isArray(tokens) ? tokens.map(Number) : `${status} ${errorText(body)}`;
}

function difference(what: string, ours: readonly number[], theirs: readonly number[]): string {
  const at = ours.findIndex((id, i) => id !== theirs[i]);
  const from = Math.max(0, at === -1 ? ours.length : at);
  const shown = (ids: readonly number[]) => `[${from > 0 ? "…," : ""}${ids.slice(from, from + 5)}]`;
  return `${what}: ours ${shown(ours)}, theirs ${shown(theirs)}`;
}
