// A request of the Responses API → a chat. What a response continues is part of the messages.
import { invalidValue } from "../../../errors/service-error.ts";
import type { TextGrammar } from "../../../grammar/constraint.ts";
import { isJsonObject, type JsonObject } from "../../../json/json.ts";
import { functionTool, type WireMessage, type WireTool } from "../../generation/messages.ts";
import {
  allowedTools,
  type CustomTools,
  checkCustomTools,
  customFunction,
  effortFields,
} from "../../generation/openai-extensions.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { ChatRules } from "../chat/chat.validate.ts";
import type { ResponsesBody } from "./responses.schema.ts";

// Tools and tool choices of the Responses API → those of a chat. Only functions and custom tools can be called: what OpenAI hosts does
// not exist here.

type ChatTools = Pick<ChatBody, "tools" | "tool_choice">;

/** Hosted tools, by the beginning of their types → what is missing here. */
const HOSTED = new Map([
  ["web_search", "this server does not search the web"],
  ["file_search", "this server has no vector stores"],
  ["computer", "this server controls no computer"],
  ["code_interpreter", "this server runs no code"],
  ["image_generation", "this server makes no images"],
  ["mcp", "this server calls no MCP servers; an agent can, and offer their tools as functions"],
  ["local_shell", "define the shell as a function"],
  ["shell", "define the shell as a function"],
  ["apply_patch", "define the patch tool as a function"],
  ["custom", "start the server with --enable-openai-extensions, or define a function"],
]);

function chatTools(body: ResponsesBody, rules: Pick<ChatRules, "extensions">): ChatTools & { custom: CustomTools } {
  const custom = new Map<string, TextGrammar | null>();
  const tools = (body.tools ?? []).map((tool, index) =>
    rules.extensions && tool.type === "custom"
      ? customTool(tool, `tools.${index}`, custom)
      : readTool(tool, `tools.${index}`),
  );
  checkCustomTools(
    custom,
    tools.map((tool) => tool.function.name),
  );
  const known = body.tools == null ? {} : { tools };
  return { ...known, ...toolChoice(body.tool_choice, tools, custom), custom };
}

function toolChoice(choice: ResponsesBody["tool_choice"], tools: readonly WireTool[], custom: CustomTools): ChatTools {
  if (choice === undefined) return {};
  if (choice === null || typeof choice === "string") return { tool_choice: choice };
  const { type, name } = choice;
  if (typeof name === "string" && (type === "function" || (type === "custom" && custom.has(name)))) {
    return { tool_choice: { type: "function", function: { name } } };
  }
  if (type === "allowed_tools") return allowed(choice, tools);
  throw invalidValue(
    'tool_choice must be "none", "auto", "required", {type: function, name}, {type: allowed_tools} or {type: custom, name} of one of the tools: hosted tools are not offered.',
    "tool_choice",
  );
}

/** `known` gets its name and grammar. */
function customTool(tool: JsonObject, path: string, known: Map<string, TextGrammar | null>): WireTool {
  const { name, description, format } = tool;
  if (typeof name !== "string" || name === "") throw invalidValue("A custom tool needs a name.", `${path}.name`);
  const grammar = customGrammar(format, `${path}.format`);
  known.set(name, grammar);
  return customFunction({ name, description: typeof description === "string" ? description : null, grammar });
}

function customGrammar(format: unknown, path: string): TextGrammar | null {
  if (format == null) return null;
  if (isJsonObject(format)) {
    const { type, syntax, definition } = format;
    if (type === "text") return null;
    const isKnown = type === "grammar" && (syntax === "lark" || syntax === "regex");
    if (isKnown && typeof definition === "string") return { syntax, definition };
  }
  throw invalidValue('A format is {type: "text"} or {type: "grammar", syntax: "lark" or "regex", definition}.', path);
}

function readTool(tool: JsonObject, path: string): WireTool {
  const { type, name, parameters } = tool;
  if (type !== "function") {
    const hosted = [...HOSTED].find(([word]) => String(type).startsWith(word));
    const why = hosted === undefined ? "" : `: ${hosted[1]}`;
    throw invalidValue(`Tools of the type ${JSON.stringify(type)} are not offered here, only functions${why}.`, path);
  }
  if (typeof name !== "string" || name === "") throw invalidValue("A function needs a name.", `${path}.name`);
  if (parameters != null && !isJsonObject(parameters)) {
    throw invalidValue("parameters must be a JSON schema.", `${path}.parameters`);
  }
  return functionTool(name, tool);
}

function allowed(choice: JsonObject, known: readonly WireTool[]): ChatTools {
  const { mode, tools } = choice;
  if ((mode !== "auto" && mode !== "required") || !Array.isArray(tools)) {
    throw invalidValue("allowed_tools needs a mode, auto or required, and tools.", "tool_choice");
  }
  const names = tools.map((tool: unknown) => (isJsonObject(tool) ? tool.name : undefined));
  return allowedTools(mode, names, known);
}

/** Fields of the chat → fields of this API. */
export const FIELD_NAMES = {
  messages: "input",
  input_tokens: "input",
  input_text: "input",
  type: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  response_format: "text.format",
  logprobs: "top_logprobs",
};

const LOGPROBS = "message.output_text.logprobs";

export function wantsLogprobs({ include }: ResponsesBody): boolean {
  return include?.includes(LOGPROBS) ?? false;
}

/** `messages`: the whole conversation without the instructions. */
export function chatOf(
  body: ResponsesBody,
  messages: readonly WireMessage[],
  rules: Pick<ChatRules, "extensions">,
): { chat: ChatBody; custom: CustomTools } {
  if (body.background === true) {
    const message = "background: true is not offered: a response runs while its client waits. Use stream: true.";
    throw invalidValue(message, "background");
  }
  const { model, seed, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, cache_salt } = body;
  const sampling = { seed, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, cache_salt };
  const { custom, ...tools } = chatTools(body, rules);
  const chat = {
    ...sampling,
    model,
    messages: body.instructions ? [{ role: "system", content: body.instructions }, ...messages] : [...messages],
    stream: body.stream,
    temperature: body.temperature,
    top_p: body.top_p,
    priority: body.priority,
    max_completion_tokens: body.max_output_tokens,
    parallel_tool_calls: body.parallel_tool_calls,
    ...tools,
    response_format: responseFormat(body),
    ...effortFields(body.reasoning?.effort ?? null, body.chat_template_kwargs ?? undefined),
    logprobs: wantsLogprobs(body),
    top_logprobs: wantsLogprobs(body) ? (body.top_logprobs ?? 0) : 0,
    truncate_prompt_tokens: body.truncation === "auto" ? -1n : null,
    // What training needs has no place in a response.
    return_token_ids: false,
    return_tokens_as_token_ids: false,
  };
  return { chat: withoutAbsent(chat) as ChatBody, custom };
}

function responseFormat({ text }: ResponsesBody): ChatBody["response_format"] {
  const format = text?.format ?? { type: "text" as const };
  if (format.type !== "json_schema") return { type: format.type };
  if (format.schema == null) {
    throw invalidValue("text.format of the type json_schema needs a schema.", "text.format.schema");
  }
  if (format.name == null) throw invalidValue("text.format of the type json_schema needs a name.", "text.format.name");
  return {
    type: "json_schema",
    json_schema: { name: format.name, schema: format.schema, strict: format.strict },
  };
}

/** Absent fields stay absent: in a chat some of them differ from null. */
function withoutAbsent(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
