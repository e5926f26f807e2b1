// What the routes need of the MCP servers that the operator lists. app/mcp-servers.ts asks them.

export interface McpTool {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: Record<string, unknown>;
}

export interface McpResult {
  content: string;
  /** The tool ran and says that it failed. */
  isError: boolean;
}

/** What went wrong with a server, as a sentence for clients. */
export class McpFailure extends Error {}

/** The listed servers. They fail with McpFailure. */
export interface McpServers {
  readonly names: readonly string[];
  tools(server: string, gone: AbortSignal): Promise<McpTool[]>;
  call(server: string, tool: string, args: Record<string, unknown>, gone: AbortSignal): Promise<McpResult>;
}
