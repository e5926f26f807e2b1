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
  /** What the parser takes for the beginning of calls in a text; empty: only the whole reply can be calls. */
  marks: readonly CallMark[];
}

export interface CallMark {
  mark: string;
  /** What follows the mark in front of a list of calls, which ends with `last`; null = the mark itself begins a call. */
  list: string | null;
}

const PLAIN_NAME = /^[\w.-]+$/;

const list = (first: string, marks: readonly CallMark[]): CallSpelling => ({
  first,
  last: "]",
  separator: ", ",
  before: (name) => `{"name": ${JSON.stringify(name)}, "arguments": `,
  after: "}",
  names: null,
  marks,
});

const deepseek = (before: (name: string) => string, after: string): CallSpelling => ({
  first: "<｜tool▁calls▁begin｜>",
  last: "<｜tool▁calls▁end｜>",
  separator: "\n",
  before: (name) => `<｜tool▁call▁begin｜>${before(name)}`,
  after: `${after}<｜tool▁call▁end｜>`,
  names: PLAIN_NAME,
  marks: [
    { mark: "<｜tool▁calls▁begin｜>", list: "" },
    { mark: "<｜tool▁call▁begin｜>", list: null },
  ],
});

export const CALL_SPELLINGS: Record<Exclude<ToolCallFormat, "pythonic" | "glm45">, CallSpelling> = {
  hermes: {
    first: "",
    last: "",
    separator: "\n",
    before: (name) => `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
    after: "}\n</tool_call>",
    names: null,
    marks: [{ mark: "<tool_call>", list: null }],
  },
  llama3_json: {
    first: "",
    last: "",
    separator: "; ",
    before: (name) => `{"name": ${JSON.stringify(name)}, "parameters": `,
    after: "}",
    names: null,
    marks: [],
  },
  mistral: list("[TOOL_CALLS][", [{ mark: "[TOOL_CALLS]", list: "[" }]),
  granite: list("<|tool_call|>[", [
    { mark: "<|tool_call|>", list: "[" },
    { mark: "<tool_call>", list: "[" },
  ]),
  phi4_mini_json: list("functools[", [
    { mark: "functools[", list: "" },
    { mark: "<|tool_call|>", list: "[" },
  ]),
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
    marks: [
      { mark: "<|tool_calls_section_begin|>", list: "" },
      { mark: "<|tool_call_section_begin|>", list: "" },
      { mark: "<|tool_call_begin|>", list: null },
    ],
  },
};
