// MCP servers that the operator lists: their tools, as a chat offers them, and calls of them. Our server relays both.
import { effect, signal } from "@preact/signals";
import { getJson, postJson } from "../server.ts";
import { may, me } from "../server-facts.ts";
import { type Call, nameFrom, type Tool } from "./tools.ts";

export const mcpServers = signal<readonly string[]>([]);
/** The server that runs a tool at the moment; null: none does. */
export const calledServer = signal<string | null>(null);

interface Listed {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** Asks for the names after signing in. */
export function followMcpServers(): void {
  effect(() => {
    const user = me.value?.id;
    mcpServers.value = [];
    if (user === undefined || !may("inference")) return;
    getJson<{ data: { name: string }[] }>("/mcp-servers").then(
      ({ data }) => {
        if (me.peek()?.id === user) mcpServers.value = data.map(({ name }) => name);
      },
      () => {}, // server.ts has noted a refused key or a lost server
    );
  });
}

export async function toolsOfServer(server: string): Promise<Tool[]> {
  const { data } = await getJson<{ data: Listed[] }>(`/mcp-servers/${server}/tools`);
  return data.map(({ name, description, parameters }) => ({
    ...{ name: nameFrom(name), description, parameters: JSON.stringify(parameters, null, 2) },
    ...{ result: null, isOn: true, server: { name: server, tool: name } },
  }));
}

/** What a tool returned. What it says about a failure is for the model, too. Throws a sentence if it could not be called. */
export async function callTool({ name, server }: Tool, call: Call, signal?: AbortSignal): Promise<string> {
  const args = argumentsIn(name, call.arguments);
  calledServer.value = server!.name;
  try {
    const path = `/mcp-servers/${server!.name}/calls`;
    return (await postJson<{ content: string }>(path, { tool: server!.tool, arguments: args }, { signal })).content;
  } finally {
    calledServer.value = null;
  }
}

function argumentsIn(name: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`The model called ${name} with arguments that are no JSON object, so nobody was asked.`);
}
