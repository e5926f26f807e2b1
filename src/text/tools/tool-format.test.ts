import { describe, expect, test } from "vitest";
import type { ToolCallFormat } from "../../grammar/constraint.ts";
import { shownFormat, toolCallFormat } from "./tool-format.ts";

describe("the format", () => {
  test.each<[string, ToolCallFormat | null]>([
    ["{{ '<tool_call>\\n' }}{{ call | tojson }}", "hermes"],
    ["[TOOL_CALLS][", "mistral"],
    ["respond with <|tool_call|> followed by a JSON list", "granite"],
    ["'<|tool|>' + tools + '<|/tool|>'", "phi4_mini_json"],
    ["formatted as functools[{...}]", "phi4_mini_json"],
    ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + t + '<｜tool▁sep｜>' + n + '\\n```json\\n'", "deepseek_v3"],
    ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + n + '<｜tool▁sep｜>'", "deepseek_v31"],
    ["<|tool_calls_section_begin|>", "kimi_k2"],
    ["<tool_call>{function-name}\\n<arg_key>{k}</arg_key>", "glm45"],
    ['Respond in the format {"name": function name, "parameters": dictionary}', "llama3_json"],
    ["[func_name1(params_name1=params_value1)]", "pythonic"],
    ["<tool_call>\\n<function=example>", null],
    ["<|channel|>analysis", null],
    ["{{ messages[0].content }}", null],
  ])("is found in a template: %s", (template, format) => {
    expect(shownFormat(template)).toBe(format);
  });

  test("is named, found, or refused with a reason", () => {
    expect(toolCallFormat("qwen")).toBe("hermes");
    expect(toolCallFormat("auto", "<tool_call>")).toBe("hermes");
    expect(() => toolCallFormat("auto", "plain")).toThrow(/choose with --tool-call-parser; known: hermes/);
    expect(() => toolCallFormat("auto", null)).toThrow(/--tool-call-parser/);
    expect(() => toolCallFormat("openai")).toThrow(/harmony channels/);
    expect(() => toolCallFormat("nope")).toThrow(/there is no parser "nope"; known: auto, hermes/);
  });
});
