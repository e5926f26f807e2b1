// The tools of a chat: made from a template, each with its schema and with a result that is set or typed.
import { useRef } from "preact/hooks";
import { Choice } from "../parts/choice.tsx";
import { facts } from "../server-facts.ts";
import { McpTools } from "./mcp-tools.tsx";
import { NumberField } from "./number-field.tsx";
import { change, settings } from "./state.ts";
import { TOOL_TEMPLATES, type Tool, toolProblem } from "./tools.ts";

const RESULT_NAMES = { typed: "I type it", set: "always this" } as const;

export function ToolEditor() {
  const { tools, toolTurns } = settings.value;
  const templates = useRef<HTMLDivElement>(null);
  const put = (index: number, part: Partial<Tool>) =>
    change({ tools: tools.map((tool, i) => (i === index ? { ...tool, ...part } : tool)) });
  return (
    <div class="tool-editor">
      {tools.map((tool, i) => {
        const onRemove = () => {
          change({ tools: tools.filter((_tool, other) => other !== i) });
          templates.current?.focus(); // the button is gone with the tool
        };
        const onChange = (part: Partial<Tool>) => put(i, part);
        return tool.server === undefined ? (
          <ToolFields key={i} {...{ tool, onChange, onRemove }} number={i + 1} />
        ) : (
          <ServerTool key={i} {...{ tool, onChange, onRemove }} />
        );
      })}
      {facts.value?.parsers.auto_tool_choice === false && tools.length > 0 && (
        <p class="muted hint">
          This server does not read tool calls (<code>--enable-auto-tool-choice</code>). The page finds those that a
          model writes between <code>&lt;tool_call&gt;</code> tags.
        </p>
      )}
      <div class="row" ref={templates} tabIndex={-1}>
        Add
        {TOOL_TEMPLATES.map((template) => (
          <button
            key={template.name}
            type="button"
            class="small"
            aria-disabled={tools.some(({ name }) => name === template.name)}
            onClick={() => {
              if (!tools.some(({ name }) => name === template.name)) change({ tools: [...tools, template] });
            }}
          >
            {template.name}
          </button>
        ))}
      </div>
      <McpTools />
      {tools.length > 0 && (
        <NumberField
          name="turns by itself"
          isExplained
          title="how often the chat goes on by itself after calls whose results are set or come from a server"
          value={toolTurns}
          least={0}
          most={100}
          onChange={(value) => change({ toolTurns: value ?? 0 })}
        />
      )}
    </div>
  );
}

interface ServerToolProps {
  tool: Tool;
  onChange: (part: Partial<Tool>) => void;
  onRemove: () => void;
}

interface ToolFieldsProps extends ServerToolProps {
  number: number;
}

/** What a server runs is as the server says. */
function ServerTool({ tool: { name, server, isOn, parameters }, onChange, onRemove }: ServerToolProps) {
  return (
    <div class="tool row nowrap">
      <input
        type="checkbox"
        aria-label={`Offer ${name}`}
        checked={isOn}
        onChange={(event) => onChange({ isOn: event.currentTarget.checked })}
      />
      <details>
        <summary>
          <b class="mono">{name}</b> <span class="muted">of {server!.name}</span>
        </summary>
        <pre>{parameters}</pre>
      </details>
      <span class="spring" />
      <button type="button" class="small quiet" aria-label={`Remove ${name}`} onClick={onRemove}>
        ×
      </button>
    </div>
  );
}

function ToolFields({ tool, number, onChange, onRemove }: ToolFieldsProps) {
  const { name, description, parameters, result, isOn } = tool;
  const problem = toolProblem(tool);
  return (
    <fieldset class="tool">
      <legend class="sr-only">Tool {number}</legend>
      <div class="row nowrap">
        <input
          type="checkbox"
          aria-label={`Offer ${name}`}
          checked={isOn}
          onChange={(event) => onChange({ isOn: event.currentTarget.checked })}
        />
        <input
          class="mono"
          aria-label="Name of the tool"
          spellcheck={false}
          value={name}
          onInput={(event) => onChange({ name: event.currentTarget.value.trim() })}
        />
        <button type="button" class="small quiet" aria-label={`Remove ${name}`} onClick={onRemove}>
          ×
        </button>
      </div>
      <label class="stacked">
        <span>what it does</span>
        <textarea
          rows={2}
          value={description}
          onInput={(event) => onChange({ description: event.currentTarget.value })}
        />
      </label>
      <label class="stacked">
        <span>parameters, as a JSON schema</span>
        <textarea
          class="mono"
          rows={Math.min(10, parameters.split("\n").length)}
          spellcheck={false}
          aria-invalid={problem !== null}
          value={parameters}
          onInput={(event) => onChange({ parameters: event.currentTarget.value })}
        />
      </label>
      {problem !== null && <p class="problem">{problem}</p>}
      <Choice
        legend="result"
        name={`tool-result-${number}`}
        names={RESULT_NAMES}
        values={["typed", "set"] as const}
        value={result === null ? "typed" : "set"}
        onChange={(how) => onChange({ result: how === "set" ? "" : null })}
      />
      {result !== null && (
        <textarea
          class="mono"
          rows={2}
          spellcheck={false}
          aria-label={`Result of ${name}`}
          value={result}
          onInput={(event) => onChange({ result: event.currentTarget.value })}
        />
      )}
    </fieldset>
  );
}
