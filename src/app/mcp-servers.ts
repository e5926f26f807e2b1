// Asks the MCP servers of --mcp-server over HTTP, with the official SDK, which is loaded only for this. Every request is a session of
// its own, so nothing of one caller reaches another. Time and bytes are bounded, and redirects are not followed: a server that is
// listed cannot send this one anywhere else.
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { McpFailure, type McpResult, type McpServers, type McpTool } from "../api/serving/mcp-servers.ts";
import { OperatorError } from "../errors/faults.ts";
import type { Log } from "../observe/log.ts";
import { PACKAGE_VERSION } from "../system/package.ts";

const PACKAGE = "@modelcontextprotocol/client";
/** Of all that a session receives. */
const MOST_BYTES = 2 ** 20;
const MOST_MS = 60_000;
/** For saying that a session ends. */
const END_MS = 2_000;
/** Of what a server says about an error. */
const LONGEST_MESSAGE = 500;

type Sdk = Pick<
  typeof import("@modelcontextprotocol/client"),
  "Client" | "StreamableHTTPClientTransport" | "ProtocolError"
>;

export interface McpOptions {
  load?: () => Promise<Sdk>;
  mostMs?: number;
}

/** `servers`: NAME=URL. Null if there are none. Throws OperatorError if the SDK is not installed. */
export async function openMcpServers(
  servers: readonly string[],
  log: Log,
  { load = () => import("@modelcontextprotocol/client"), mostMs = MOST_MS }: McpOptions = {},
): Promise<McpServers | null> {
  if (servers.length === 0) return null;
  const sdk = await loaded(load);
  const urls = new Map(
    servers.map((server) => {
      const at = server.indexOf("=");
      return [server.slice(0, at), new URL(server.slice(at + 1))];
    }),
  );
  const session = async <Value>(
    name: string,
    gone: AbortSignal,
    work: (client: Client, options: { signal: AbortSignal; timeout: number }) => Promise<Value>,
  ): Promise<Value> => {
    const stopper = new AbortController();
    const signal = AbortSignal.any([gone, stopper.signal, AbortSignal.timeout(mostMs)]);
    const transport = new sdk.StreamableHTTPClientTransport(urls.get(name)!, {
      fetch: boundedFetch(signal, stopper),
      requestInit: { redirect: "error" },
      reconnectionOptions: {
        ...{ maxRetries: 0, initialReconnectionDelay: 1, maxReconnectionDelay: 1 },
        reconnectionDelayGrowFactor: 1,
      },
    });
    const client = new sdk.Client(
      { name: "flywheel", version: PACKAGE_VERSION },
      { versionNegotiation: { mode: "auto" } },
    );
    const options = { signal, timeout: mostMs };
    try {
      await client.connect(transport, options);
      return await work(client, options);
    } catch (error) {
      const why = signal.aborted ? signal.reason : error;
      if (!gone.aborted) log.warn("an MCP server failed", { server: name, error: why });
      throw new McpFailure(`The MCP server ${name} ${whatFailed(sdk, why, mostMs)}`, { cause: why });
    } finally {
      void end(client, transport);
    }
  };
  return {
    names: [...urls.keys()],
    tools: (name, gone) => session(name, gone, async (client, options) => toolsOf(await client.listTools({}, options))),
    call: (name, tool, args, gone) =>
      session(name, gone, async (client, options) =>
        resultOf(await client.callTool({ name: tool, arguments: args }, options)),
      ),
  };
}

async function loaded(load: () => Promise<Sdk>): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new OperatorError(`--mcp-server needs the package ${PACKAGE}: npm install ${PACKAGE}`, { cause: error });
  }
}

class TooManyBytes extends Error {}

/** Ends the session when it has received too much: the SDK itself would wait for the end of a stream that is cut. */
function boundedFetch(session: AbortSignal, stopper: AbortController): typeof fetch {
  let left = MOST_BYTES;
  return async (url, init) => {
    const isEnd = init?.method === "DELETE"; // sent when the session is over
    const signal = isEnd
      ? AbortSignal.timeout(END_MS)
      : AbortSignal.any([session, ...(init?.signal ? [init.signal] : [])]);
    const response = await fetch(url, { ...init, signal });
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          left -= chunk.byteLength;
          if (left >= 0) return controller.enqueue(chunk);
          const error = new TooManyBytes("the server sent too much");
          stopper.abort(error);
          controller.error(error);
        },
      }),
    );
    return new Response(counted, { status, statusText, headers });
  };
}

/** A server that does not hear it forgets the session by itself. */
async function end(client: Client, transport: { terminateSession(): Promise<void> }): Promise<void> {
  await transport.terminateSession().catch(() => {});
  await client.close().catch(() => {});
}

function whatFailed(sdk: Sdk, error: unknown, mostMs: number): string {
  if (error instanceof TooManyBytes) return "sent more than 1 MiB.";
  if (error instanceof DOMException && error.name === "TimeoutError") return `took longer than ${mostMs / 1000} s.`;
  if (error instanceof sdk.ProtocolError) return `answered: ${error.message.slice(0, LONGEST_MESSAGE)}`;
  return "cannot be reached, or does not speak MCP over HTTP.";
}

function toolsOf({ tools }: Awaited<ReturnType<Client["listTools"]>>): McpTool[] {
  return tools.map(({ name, description = "", inputSchema }) => ({ name, description, parameters: inputSchema }));
}

/** Models here read text only: what is no text is named. */
function resultOf({ content, structuredContent, isError = false }: CallToolResult): McpResult {
  const parts = content.map((part) => {
    if (part.type === "text") return part.text;
    if (part.type === "resource" && "text" in part.resource) return part.resource.text;
    return part.type === "resource_link" ? part.uri : `[${part.type}]`;
  });
  const isBare = parts.length === 0 && structuredContent !== undefined;
  return { content: isBare ? JSON.stringify(structuredContent) : parts.join("\n"), isError };
}
