// MCP servers of the operator (--mcp-server): their tools, and calls of them. The page connects to nothing but this server, which
// relays to the listed ones only.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { SharedRoom } from "../generation/shared-room.ts";
import { principalOf } from "../http/auth.ts";
import { clientGone } from "../http/streams.ts";
import { route } from "../route.ts";
import { readBody } from "../schema/body.ts";
import { wholeListOf } from "../schema/list.ts";
import type { Service } from "../service.ts";
import { McpFailure, type McpServers } from "./mcp-servers.ts";

/** Requests to servers at once, so that slow ones pile nothing up here. */
const AT_ONCE = { all: 32, each: 8 };
const MOST_BODY_BYTES = 2 ** 20;

const ServerList = wholeListOf(
  Type.Object({ object: Type.Literal("mcp_server"), name: Type.String() }),
  "McpServerList",
);

const Tool = Type.Object({
  name: Type.String(),
  description: Type.String(),
  parameters: Type.Record(Type.String(), Type.Unknown(), { description: "JSON schema of the arguments." }),
});
const ToolList = wholeListOf(Tool, "McpToolList");

const Call = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 256 }),
    arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { title: "McpCall" },
);

const CallResult = Type.Object(
  {
    object: Type.Literal("mcp_result"),
    content: Type.String({ description: "What the tool returned, as text. Parts that are no text are named." }),
    is_error: Type.Boolean({ description: "The tool ran and says that it failed." }),
  },
  { title: "McpResult" },
);

export function registerMcp(app: FastifyInstance, service: Service): void {
  const room = new SharedRoom(AT_ONCE, () => {
    return new ServiceError("mcp_server_busy", "Too many calls of MCP servers run at the moment.");
  });
  const relay = async <Value>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (servers: McpServers, server: string, gone: AbortSignal) => Promise<Value>,
  ): Promise<Value> => {
    const { server } = request.params as { server: string };
    const { mcpServers: servers } = service;
    if (servers === null || !servers.names.includes(server)) {
      throw new ServiceError("unknown_mcp_server", `There is no MCP server ${JSON.stringify(server.slice(0, 64))}.`);
    }
    room.hold(principalOf(request).id, reply.raw).reserve(1);
    try {
      return await work(servers, server, AbortSignal.any([clientGone(reply.raw), service.cutSignal]));
    } catch (error) {
      if (error instanceof McpFailure) throw new ServiceError("mcp_server_failed", error.message, { cause: error });
      throw error;
    }
  };

  app.get(
    "/v1/mcp-servers",
    route("inference", "MCP servers whose tools may be called", { reply: ServerList }),
    async () => ({
      object: "list",
      data: (service.mcpServers?.names ?? []).map((name) => ({ object: "mcp_server", name })),
    }),
  );

  app.get(
    "/v1/mcp-servers/:server/tools",
    route("inference", "Tools of an MCP server", { reply: ToolList, errors: [429, 502] }),
    async (request, reply) => ({
      object: "list",
      data: await relay(request, reply, (servers, server, gone) => servers.tools(server, gone)),
    }),
  );

  app.post(
    "/v1/mcp-servers/:server/calls",
    {
      bodyLimit: MOST_BODY_BYTES,
      ...route("inference", "Call a tool of an MCP server", { body: Call, reply: CallResult, errors: [502] }),
    },
    async (request, reply) => {
      const { tool, arguments: args = {} } = readBody(Call, request.body ?? null).value;
      const { content, isError } = await relay(request, reply, (servers, server, gone) =>
        servers.call(server, tool, args, gone),
      );
      return { object: "mcp_result", content, is_error: isError };
    },
  );
}
