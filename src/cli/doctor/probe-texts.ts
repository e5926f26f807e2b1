// Texts and conversations on which tokenizers and chat templates tend to differ.

import type { JsonObject } from "../../json/json.ts";

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
export function probeTexts(specialTokens: readonly string[]): string[] {
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
  let state = seed;
  const next = (bound: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
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

export const PROBE_CONVERSATIONS: readonly ProbeConversation[] = [
  { name: "one message", messages: [USER], fields: {} },
  { name: "a system message", messages: [SYSTEM, USER], fields: {} },
  { name: "several turns", messages: [SYSTEM, USER, ASSISTANT, { role: "user", content: "And 3 + 3?" }], fields: {} },
  { name: "no generation prompt", messages: [USER, ASSISTANT], fields: { add_generation_prompt: false } },
  { name: "spaces around the content", messages: [{ role: "user", content: "  hi  \n" }], fields: {} },
  { name: "Unicode", messages: [{ role: "user", content: "你好 😀 naïve" }], fields: {} },
  { name: "markup in the content", messages: [{ role: "user", content: "{{ x }} {% if %} </s>" }], fields: {} },
];
