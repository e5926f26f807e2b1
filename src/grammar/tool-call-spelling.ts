// How forced calls with JSON arguments are spelled, in each format that has them. text/tools reads them.

import type { ToolCallFormat } from "./constraint.ts";

/** `first`, calls with a `separator` between them, `last`. A call is `before` its arguments, the arguments, `after`. */
export interface CallSpelling {
  first: string;
  last: string;
  separator: string;
  before(name: string): string;
  after: string;
  /** Names that the parser can read; null = all. */
  names: RegExp | null;
}

const PLAIN_NAME = /^[\w.-]+$/;

const list = (first: string): CallSpelling => ({
  first,
  last: "]",
  separator: ", ",
  before: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
  after: "}",
  names: null,
});

const deepseek = (before: (name: string) => string, after: string): CallSpelling => ({
  first: "<｜tool▁calls▁begin｜>",
  last: "<｜tool▁calls▁end｜>",
  separator: "\n",
  before: (name) => `<｜tool▁call▁begin｜>${before(name)}`,
  after: `${after}<｜tool▁call▁end｜>`,
  names: PLAIN_NAME,
});

export const CALL_SPELLINGS: Record<Exclude<ToolCallFormat, "pythonic" | "glm45">, CallSpelling> = {
  hermes: {
    first: "",
    last: "",
    separator: "\n",
    before: (name) => `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
    after: "}\n</tool_call>",
    names: null,
  },
  llama3_json: {
    first: "",
    last: "",
    separator: "; ",
    before: (name) => `{"name": ${JSON.stringify(name)}, "parameters": `,
    after: "}",
    names: null,
  },
  mistral: list("[TOOL_CALLS]["),
  granite: list("<|tool_call|>["),
  phi4_mini_json: list("functools["),
  deepseek_v3: deepseek((name) => `function<｜tool▁sep｜>${name}\n\`\`\`json\n`, "\n```"),
  deepseek_v31: deepseek((name) => `${name}<｜tool▁sep｜>`, ""),
  kimi_k2: {
    first: "<|tool_calls_section_begin|>",
    last: "<|tool_calls_section_end|>",
    separator: "\n",
    // A grammar cannot count. Calls with the same number get other ids.
    before: (name) => `<|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>`,
    after: "<|tool_call_end|>",
    names: PLAIN_NAME,
  },
};
