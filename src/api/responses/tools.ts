// Tools and tool choices of the Responses API → those of a chat. Only functions can be called: what OpenAI hosts does not
// exist here.
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { WireTool } from "../request/message.schema.ts";
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
  ["custom", "a call must have JSON arguments: define a function"],
]);

export function chatTools({ tools, tool_choice: choice }: ResponsesBody): ChatTools {
  const functions = (tools ?? []).map((tool, index) => functionTool(tool, `tools.${index}`));
  const known = tools == null ? {} : { tools: functions };
  if (choice === undefined) return known;
  if (choice === null || typeof choice === "string") return { ...known, tool_choice: choice };
  if (choice.type === "function" && typeof choice.name === "string") {
    return { ...known, tool_choice: { type: "function", function: { name: choice.name } } };
  }
  if (choice.type === "allowed_tools") return allowed(choice, functions);
  throw refuse(
    'tool_choice must be "none", "auto", "required", {type: function, name} or {type: allowed_tools}: hosted tools are not offered.',
    "tool_choice",
  );
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

/** The model sees and may call these functions only. */
function allowed(choice: JsonObject, functions: readonly WireTool[]): ChatTools {
  const { mode, tools } = choice;
  if ((mode !== "auto" && mode !== "required") || !Array.isArray(tools)) {
    throw refuse("allowed_tools needs a mode, auto or required, and tools.", "tool_choice");
  }
  const names = new Set(tools.map((tool: unknown) => (isJsonObject(tool) ? tool.name : undefined)));
  const chosen = functions.filter((tool) => names.has(tool.function.name));
  if (chosen.length < names.size) throw refuse("allowed_tools names a function that is not in tools.", "tool_choice");
  return { tools: chosen, tool_choice: mode };
}

function refuse(message: string, param: string): ServiceError {
  return new ServiceError("invalid_value", message, { param });
}
