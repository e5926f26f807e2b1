// The tools of the MCP servers that the operator lists. A tool is offered to the model when it is chosen here.
import { useSignal } from "@preact/signals";
import { messageOf } from "../session.ts";
import { mcpServers, toolsOfServer } from "./mcp.ts";
import { change, settings } from "./state.ts";
import type { Tool } from "./tools.ts";

export function McpTools() {
  return mcpServers.value.map((name) => <ServerTools key={name} server={name} />);
}

function ServerTools({ server }: { server: string }) {
  const found = useSignal<readonly Tool[] | null>(null);
  const problem = useSignal<string | null>(null);
  const load = async () => {
    problem.value = null;
    try {
      found.value = await toolsOfServer(server);
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <details
      class="mcp-server"
      onToggle={({ currentTarget: { open } }) => {
        if (open && found.value === null) void load();
      }}
    >
      <summary>
        Tools of <b>{server}</b>
      </summary>
      <div role="status">
        {problem.value !== null && (
          <p class="problem">
            {problem.value}{" "}
            <button type="button" class="small" onClick={() => void load()}>
              Try again
            </button>
          </p>
        )}
        {found.value === null && problem.value === null && <p class="muted">asking…</p>}
        {found.value?.length === 0 && <p class="muted">It has none.</p>}
      </div>
      {found.value?.map((tool) => (
        <ToolChoice key={tool.server!.tool} tool={tool} />
      ))}
    </details>
  );
}

function ToolChoice({ tool }: { tool: Tool }) {
  const { tools } = settings.value;
  const isThis = (other: Tool) => other.server?.name === tool.server!.name && other.server.tool === tool.server!.tool;
  const isTaken = tools.some((other) => other.name === tool.name && !isThis(other));
  return (
    <label class="mcp-tool" title={isTaken ? "Another tool of this chat has the name." : undefined}>
      <input
        type="checkbox"
        checked={tools.some(isThis)}
        disabled={isTaken}
        onChange={({ currentTarget: { checked } }) =>
          change({ tools: checked ? [...tools, tool] : tools.filter((other) => !isThis(other)) })
        }
      />{" "}
      <b class="mono">{tool.name}</b> <span class="muted">{firstSentence(tool.description)}</span>
    </label>
  );
}

const LONGEST = 160;

function firstSentence(text: string): string {
  const sentence = /^[^\n]*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text.split("\n")[0]!;
  return sentence.length <= LONGEST ? sentence : `${sentence.slice(0, LONGEST - 1)}…`;
}
