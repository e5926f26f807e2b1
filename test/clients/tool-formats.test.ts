// Every format of tool calls over HTTP, with the OpenAI SDK: a long text argument arrives in many pieces, and the whole is
// what a reply without a stream has. One token of the fake model is one byte.
import OpenAI from "openai";
import { expect, it } from "vitest";
import type { ToolCallFormat } from "../../src/grammar/constraint.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";

const TEXT = "a line of a poem that goes on for a while";
const OBJECT = `{"name": "write", "arguments": {"text": "${TEXT}"}}`;

const WRITTEN: Record<ToolCallFormat, string> = {
  hermes: `<tool_call>${OBJECT}</tool_call>`,
  llama3_json: OBJECT,
  pythonic: `[write(text='${TEXT}')]`,
  mistral: `[TOOL_CALLS]write{"text": "${TEXT}"}`,
  granite: `<|tool_call|>[${OBJECT}]`,
  phi4_mini_json: `functools[${OBJECT}]`,
  deepseek_v3: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write\n\`\`\`json\n{"text": "${TEXT}"}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  deepseek_v31: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write<｜tool▁sep｜>{"text": "${TEXT}"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  kimi_k2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"text": "${TEXT}"}<|tool_call_end|><|tool_calls_section_end|>`,
  glm45: `<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>${TEXT}</arg_value>\n</tool_call>`,
};

it.each(Object.entries(WRITTEN) as [ToolCallFormat, string][])("%s", async (format, written) => {
  const server = await startTestServer({ config: { enableAutoToolChoice: true }, model: { toolFormat: format } });
  try {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: API_KEY, maxRetries: 0 });
    const parameters = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
    const request = {
      model: "fake",
      messages: [{ role: "user" as const, content: `say:${written}` }],
      tools: [{ type: "function" as const, function: { name: "write", parameters } }],
    };
    const { choices } = await client.chat.completions.create(request);
    const expected = { name: "write", arguments: `{"text": "${TEXT}"}` };
    expect(choices).toMatchObject([
      { finish_reason: "tool_calls", message: { content: null, tool_calls: [{ function: expected }] } },
    ]);

    const pieces: string[] = [];
    const stream = client.chat.completions.stream(request);
    stream.on("tool_calls.function.arguments.delta", ({ arguments_delta }) => pieces.push(arguments_delta));
    const streamed = await stream.finalChatCompletion();
    expect(streamed.choices).toMatchObject([{ message: { content: "", tool_calls: [{ function: expected }] } }]);
    expect(pieces.join("")).toBe(expected.arguments);
    expect(pieces.filter((piece) => piece !== "").length).toBeGreaterThanOrEqual(TEXT.length);
  } finally {
    await server.close();
  }
});
