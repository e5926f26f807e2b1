// From messages to the prompt the model sees.
import { describe, expect, it } from "vitest";
import { sharedServer } from "../../support/shared-server.ts";

const server = sharedServer();

describe("prompt", () => {
  const promptOf = async (body: object) =>
    Buffer.from((await server.chat({ max_tokens: 1, return_token_ids: true, ...body })).prompt_token_ids).toString();

  it("renders roles, parts, tools and template variables", async () => {
    const messages = [
      { role: "system", content: "be" },
      { role: "user", name: "Ada", content: ["a", { type: "text", text: "b" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      },
      { role: "tool", tool_call_id: "1", content: [{ type: "text", text: "4" }] },
      { role: "narrator", content: "c" },
    ];
    expect(await promptOf({ messages })).toBe("[system]be\n[user]a\nb\n[assistant]\n[tool]4\n[narrator]c\n[assistant]");
    expect(await promptOf({ messages: [messages[0]], tools: [{ type: "function", function: { name: "f" } }] })).toBe(
      '[tools][{"type": "function", "function": {"name": "f", "description": null, "parameters": null}}]\n[system]be\n[assistant]',
    );
    const chat_template =
      "{{ messages[0].name }}{{ messages[0].reasoning }}{{ documents[0].title }}{{ reasoning_effort }}{{ extra }}{{ enable_thinking }}";
    expect(
      await promptOf({
        messages: [{ role: "assistant", name: "n", content: "c", reasoning_content: "r" }],
        documents: [{ title: "t", text: "x" }],
        reasoning_effort: "high",
        chat_template_kwargs: { extra: 5, unused: 1 },
        chat_template,
      }),
    ).toBe("nrthigh5True");
    const named = { messages: [messages[0]], chat_template: "{{ documents[0].title }}" };
    const documents = [{ title: "as a variable" }];
    expect(await promptOf({ ...named, chat_template_kwargs: { documents } })).toBe("as a variable");
    const both = { documents: [{ title: "as a field", text: "x" }], chat_template_kwargs: { documents } };
    expect(await promptOf({ ...named, ...both })).toBe("as a field");
  });

  it("prints numbers as they were written", async () => {
    const numbers = "[1.0, 1, 12345678901234567890, -0.0, 1e3, 2.50]";
    const printed = "[1.0, 1, 12345678901234567890, -0.0, 1000.0, 2.5]"; // what Python makes of them
    const tool = `{"type":"function","function":{"name":"f","parameters":{"enum":${numbers},"arguments":{"x":1.0}}}}`;
    const call = `{"id":"1","type":"function","function":{"name":"f","arguments":{"a":${numbers}}}}`;
    const body = `{
      "messages": [
        {"role":"developer","content":"7.0","tools":[${tool}]},
        {"role":"assistant","content":null,"tool_calls":[${call}]}
      ],
      "tools": [${tool}],
      "chat_template_kwargs": {"one": 1.0, "long": 9007199254740993, "all": {"n": ${numbers}, "s": "1.0"}},
      "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object",
        "properties": {"parameters": {"type": "integer", "minimum": 3.0, "maximum": 3.0}}, "required": ["parameters"]}}},
      "chat_template": "{{ messages[0].content if messages[0].role == 'developer' }} {{ messages[0].tools[0].function.parameters.enum | tojson }} {{
        messages[1].tool_calls[0].function.arguments.a }} {{ tools[0].function.parameters | tojson }} {{ one }} {{
        one | tojson }} {{ one is float }} {{ long }} {{ long | tojson }} {{ all | tojson }} {{ all.n }}",
      "max_tokens": 40, "temperature": 0, "return_token_ids": true
    }`.replaceAll("\n", " ");
    const response = await server.post("/v1/chat/completions", body);
    const reply = await response.json();
    expect(response.status).toBe(200);
    expect(reply.error).toBe(undefined);
    expect(Buffer.from(reply.prompt_token_ids).toString()).toBe(
      `7.0 ${printed} ${printed} {"enum": ${printed}, "arguments": {"x": 1.0}} 1.0 1.0 True ` +
        `9007199254740993 9007199254740993 {"n": ${printed}, "s": "1.0"} ${printed}`,
    );
    expect(JSON.parse(reply.choices[0].message.content).parameters).toBe(3);
  });

  it("continues, echoes and answers in the last role without a generation prompt", async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "on and" },
    ];
    const open = {
      messages,
      add_generation_prompt: false,
      continue_final_message: true,
      max_tokens: 3,
      temperature: 0,
    };
    expect(await promptOf(open)).toBe("[user]hi\n[assistant]on and");
    const plain = await server.chat(open);
    const echoed = await server.chat({ ...open, echo: true });
    expect(echoed.choices[0].message.content).toBe(`on and${plain.choices[0].message.content}`);
    expect(echoed.prompt_logprobs).toHaveLength(echoed.usage.prompt_tokens);
    expect(echoed.usage.completion_tokens).toBe(3);
    const user = await server.chat({ messages: [messages[0]], add_generation_prompt: false, max_tokens: 2 });
    expect(user.choices[0].message.role).toBe("user");
    const [opening] = await server.stream({ messages: [messages[0]], add_generation_prompt: false, max_tokens: 2 });
    expect(opening.choices[0].delta.role).toBe("user");
  });

  it("truncates on request only, keeping the end", async () => {
    const messages = [{ role: "user", content: "0123456789" }];
    expect(await promptOf({ messages, truncate_prompt_tokens: 14 })).toBe("89\n[assistant]");
    const long = [{ role: "user", content: "x".repeat(3000) }];
    expect((await promptOf({ messages: long, truncate_prompt_tokens: -1, max_tokens: 48 })).length).toBe(2000);
    const refused = await server.post("/v1/chat/completions", { messages: long, max_tokens: 48 });
    expect(refused.status).toBe(400);
    const { error } = await refused.json();
    expect(error).toMatchObject({ type: "BadRequestError", param: "input_tokens" });
    expect(error.message).toMatch(/^This model's maximum context length is 2048 tokens\. .*48 output.*3018 input/s);
    expect((await server.post("/v1/chat/completions", { messages: long, max_tokens: 2049 })).status).toBe(400);
    expect(
      (await server.post("/v1/chat/completions", { messages: [{ role: "user", content: "x".repeat(2030) }] })).status,
    ).toBe(400);
  });
});
