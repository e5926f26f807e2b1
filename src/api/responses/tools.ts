// Tools and tool choices of the Responses API → those of a chat. Only functions and custom tools can be called: what OpenAI hosts does
// not exist here.
import { ServiceError } from "../../errors/service-error.ts";
import type { TextGrammar } from "../../grammar/constraint.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { ChatRules } from "../chat/chat.validate.ts";
import { type CustomTools, checkCustomTools, customFunction } from "../request/custom-tools.ts";
import type { WireTool } from "../request/message.schema.ts";
import { allowedTools } from "../request/openai-extensions.ts";
import type { ResponsesBody } from "./responses.schema.ts";

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

export function chatTools(
  body: ResponsesBody,
  rules: Pick<ChatRules, "extensions">,
): ChatTools & { custom: CustomTools } {
  const custom = new Map<string, TextGrammar | null>();
  const tools = (body.tools ?? []).map((tool, index) =>
    rules.extensions && tool.type === "custom"
      ? customTool(tool, `tools.${index}`, custom)
      : functionTool(tool, `tools.${index}`),
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
  throw refuse(
    'tool_choice must be "none", "auto", "required", {type: function, name}, {type: allowed_tools} or {type: custom, name} of one of the tools: hosted tools are not offered.',
    "tool_choice",
  );
}

/** `known` gets its name and grammar. */
function customTool(tool: JsonObject, path: string, known: Map<string, TextGrammar | null>): WireTool {
  const { name, description, format } = tool;
  if (typeof name !== "string" || name === "") throw refuse("A custom tool needs a name.", `${path}.name`);
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
  throw refuse('A format is {type: "text"} or {type: "grammar", syntax: "lark" or "regex", definition}.', path);
}

function functionTool(tool: JsonObject, path: string): WireTool {
  const { type, name, description, parameters, strict } = tool;
  if (type !== "function") {
    const hosted = [...HOSTED].find(([word]) => String(type).startsWith(word));
    const why = hosted === undefined ? "" : `: ${hosted[1]}`;
    throw refuse(`Tools of the type ${JSON.stringify(type)} are not offered here, only functions${why}.`, path);
  }
  if (typeof name !== "string" || name === "") throw refuse("A function needs a name.", `${path}.name`);
  if (parameters != null && !isJsonObject(parameters)) {
    throw refuse("parameters must be a JSON schema.", `${path}.parameters`);
  }
  return {
    type: "function",
    function: {
      name,
      ...(typeof description === "string" ? { description } : {}),
      ...(parameters == null ? {} : { parameters }),
      ...(typeof strict === "boolean" ? { strict } : {}),
    },
  };
}

function allowed(choice: JsonObject, known: readonly WireTool[]): ChatTools {
  const { mode, tools } = choice;
  if ((mode !== "auto" && mode !== "required") || !Array.isArray(tools)) {
    throw refuse("allowed_tools needs a mode, auto or required, and tools.", "tool_choice");
  }
  const names = tools.map((tool: unknown) => (isJsonObject(tool) ? tool.name : undefined));
  return allowedTools(mode, names, known);
}

function refuse(message: string, param: string): ServiceError {
  return new ServiceError("invalid_value", message, { param });
}
