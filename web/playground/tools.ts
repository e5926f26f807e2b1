// Tools that a chat offers to the model. The page runs none of them: a result is typed when the model calls, is set beforehand, or
// comes from an MCP server of the operator. In the last two cases the conversation goes on by itself.
import { jsonError } from "./json-error.ts";
import type { Reply } from "./reply.ts";

export interface Tool {
  name: string;
  description: string;
  /** JSON schema of the arguments, as text. */
  parameters: string;
  /** What every call gets; null: it is typed when the model calls. */
  result: string | null;
  isOn: boolean;
  /** The MCP server that runs it, and what it is called there; none: its result is typed or set. */
  server?: { name: string; tool: string };
}

export interface Call {
  name: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
}

const object = (properties: Record<string, unknown>) =>
  JSON.stringify({ type: "object", properties, required: Object.keys(properties) }, null, 2);

export const TOOL_TEMPLATES: readonly Tool[] = [
  {
    name: "get_weather",
    description: "The weather in a city now.",
    parameters: object({ city: { type: "string", description: "such as Paris" } }),
    result: '{"temperature_c": 18, "sky": "clear"}',
    isOn: true,
  },
  {
    name: "calculate",
    description: "Works out an arithmetic expression.",
    parameters: object({ expression: { type: "string", description: "such as (3 + 4) * 5" } }),
    result: null,
    isOn: true,
  },
  {
    name: "search",
    description: "Looks something up and returns the best passages.",
    parameters: object({ query: { type: "string" } }),
    result: null,
    isOn: true,
  },
  { name: "my_tool", description: "", parameters: object({}), result: null, isOn: true },
];

/** As a request has them. Throws a sentence if one is incomplete. */
export function toolFields(tools: readonly Tool[]): Record<string, unknown> {
  const offered = tools.filter(({ isOn }) => isOn);
  if (offered.length === 0) return {};
  const wrong = offered.map(toolProblem).find((problem) => problem !== null);
  if (wrong !== undefined) throw new Error(wrong!);
  const twice = offered.find(({ name }, i) => offered.findIndex((other) => other.name === name) !== i);
  if (twice !== undefined) throw new Error(`Two tools have the name ${twice.name}.`);
  return {
    tools: offered.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, ...(description === "" ? {} : { description }), parameters: JSON.parse(parameters) as unknown },
    })),
  };
}

/** What is wrong with a tool; null if nothing is. */
export function toolProblem({ name, parameters }: Tool): string | null {
  if (!/^[\w-]{1,64}$/.test(name)) return `A tool's name has letters, digits, _ and - only: "${name}".`;
  const error = jsonError(parameters);
  if (error !== null) return `Parameters of ${name}: ${error.message}`;
  const schema: unknown = JSON.parse(parameters);
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return null;
  return `Parameters of ${name} must be one JSON object.`;
}

export function toolOf(call: Call, tools: readonly Tool[]): Tool | null {
  return tools.find((tool) => tool.isOn && tool.name === call.name) ?? null;
}

/**
 * The results of all calls, if each is set beforehand or `ask` gets it from its server; else null. Servers are asked one after the
 * other, as the model called them.
 */
export async function resultsOf(
  calls: readonly Call[],
  tools: readonly Tool[],
  ask: (tool: Tool, call: Call) => Promise<string>,
): Promise<string[] | null> {
  const called = calls.map((call) => toolOf(call, tools));
  if (called.some((tool) => tool === null || (tool.result === null && tool.server === undefined))) return null;
  const results: string[] = [];
  for (const [i, tool] of called.entries()) results.push(tool!.result ?? (await ask(tool!, calls[i]!)));
  return results;
}

/** What servers call their tools may have more letters than a request allows. */
export function nameFrom(text: string): string {
  return text.replace(/[^\w-]/g, "_").slice(0, 64);
}

/**
 * The reply of a server that does not read tool calls, with those that most models write into their text: JSON between tags. What
 * is not JSON stays text.
 */
export function withCallsInText(reply: Reply): Reply {
  if (reply.toolCalls.length > 0) return reply;
  const toolCalls: Reply["toolCalls"] = [];
  const content = reply.content.replace(/<tool_call>([\s\S]*?)<\/tool_call>/g, (written: string, json: string) => {
    const call = callIn(json);
    if (call === null) return written;
    toolCalls.push({ id: `call-${toolCalls.length + 1}`, ...call });
    return "";
  });
  return toolCalls.length === 0 ? reply : { ...reply, content: content.trim(), toolCalls };
}

function callIn(json: string): { name: string; arguments: string } | null {
  try {
    const call = JSON.parse(json) as { name?: unknown; arguments?: unknown } | null;
    if (typeof call?.name !== "string") return null;
    return { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) };
  } catch {
    return null;
  }
}
