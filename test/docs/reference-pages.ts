// Generates the pages of docs/reference that are tables in the code.

import type { Option } from "../../src/config/option.ts";
import { flagName, OPTIONS } from "../../src/config/options.ts";
import { ERRORS, type ErrorRow } from "../../src/errors/error-table.ts";
import { METRICS, type MetricRow } from "../../src/observe/metric-table.ts";

const GENERATED = "<!-- Generated from the code. To update: UPDATE_DOCS=1 npx vitest run test/docs -->";

export function errorsPage(): string {
  const rows = Object.entries(ERRORS as Record<string, ErrorRow>);
  const statuses = [...new Set(rows.map(([, { status }]) => status))].sort((a, b) => a - b);
  const sections = statuses.map((status) => {
    const here = rows.filter(([, row]) => row.status === status);
    const type = mostCommon(here.map(([, row]) => row.type));
    const items = here.map(([name, row]) => {
      const ownType = row.type === type ? "" : ` (\`${row.type}\`)`;
      return `- **${name}**${ownType}: ${row.meaning} *${row.fix}*`;
    });
    return `## ${status} \`${type}\`\n\n${items.join("\n")}\n`;
  });
  return `# Errors

${GENERATED}

What each error means, and what to do about it. Errors are grouped by status; the heading has the \`type\` that most of them carry.

\`\`\`json
{"error": {"message": "…", "type": "BadRequestError", "param": "temperature", "code": 400}}
\`\`\`

- \`code\` is the HTTP status. \`param\` names the field at fault: \`body.path.to.field\` if its shape is wrong, otherwise its plain name. It is
  null when no single field is at fault.
- Unknown paths, wrong methods and the training routes add \`detail\`, as FastAPI does. The [Messages API](messages.md#errors) answers in
  Anthropic's shape instead.
- 429 and 503 carry \`Retry-After\`, except quota_exceeded. \`x-should-retry: false\` says that repeating the request cannot help. It comes
  with ${listed(useless(rows))}.
- A request is checked before the engine sees it, so a mistake is a real 4xx even with \`stream: true\`. Only contradictory_controls and
  constraint_failed are found later. A stream that has begun fails with an error event.
- The bold name is not in the reply. It is the \`code\` label of \`flywheel_rejected_requests_total\`.

${sections.join("\n")}`;
}

function mostCommon(types: string[]): string {
  const count = (type: string) => types.filter((other) => other === type).length;
  return types.toSorted((a, b) => count(b) - count(a))[0]!;
}

/** Errors that no repetition mends: whole statuses by number, others by name. */
function useless(rows: [string, ErrorRow][]): string[] {
  const is = ([, { repeat }]: [string, ErrorRow]) => repeat === "useless";
  const named = rows.filter(is).map(([name, { status }]) => {
    return rows.every((row) => row[1].status !== status || is(row)) ? String(status) : name;
  });
  return [...new Set(named)];
}

function listed(words: string[]): string {
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

export function metricsPage(): string {
  const entries = Object.entries(METRICS as Record<string, MetricRow>);
  const sections = (["gauge", "counter", "histogram"] as const).map((kind) => {
    const items = entries
      .filter(([, row]) => row.kind === kind)
      .map(([name, row]) => `- \`${name}\`${ownLabels(row)}: ${row.help}`);
    return `## ${kind[0]!.toUpperCase()}${kind.slice(1)}s\n\n${items.join("\n")}\n`;
  });
  return `# Metrics

${GENERATED}

What \`GET /metrics\` answers, in the Prometheus text format and without a token. Metrics of vLLM have its names, so its dashboards work.

- Metrics of the model have the labels \`model_name\`, always the base model, and \`engine\`, always \`0\`. Further labels stand in braces.
- Gauges and token counters are read from the engine at each scrape. Others are recorded when a request ends, however it ended.
- Node's own metrics are there too: \`process_*\` and \`nodejs_*\`.

${sections.join("\n")}`;
}

function ownLabels({ labels }: MetricRow): string {
  const own = labels.filter((label) => label !== "model_name" && label !== "engine");
  return own.length === 0 ? "" : ` {${own.join(", ")}}`;
}

export function flagsPage(): string {
  const entries = Object.entries(OPTIONS as unknown as Record<string, Option<unknown>>);
  const groups = [...new Set(entries.map(([, option]) => option.group))].map((group) => {
    const items = entries
      .filter(([, option]) => option.group === group)
      .map(
        ([name, option]) => `- \`--${flagOf(name, option)}\`: ${option.help}${defaultOf(name, option)}${also(option)}`,
      );
    return `## ${group}\n\n${items.join("\n")}\n`;
  });
  return `# Options of \`flywheel serve\`

${GENERATED}

Every option, with its default. Each can be a flag, an environment variable or a line of a YAML file (\`--config FILE.yaml\`,
\`FLYWHEEL_CONFIG\`). A flag beats the variable, and the variable beats the file.

- \`--max-model-len 4096\` is \`FLYWHEEL_MAX_MODEL_LEN=4096\` in the environment and \`max-model-len: 4096\` in YAML.
- A switch that is on by default is turned off with \`--no-NAME\`, \`FLYWHEEL_NAME=false\` or \`name: false\`.
- For a list, repeat the flag, put commas between the values of the variable, or write a YAML list.
- Numbers may have suffixes: 4k is 4000, 4Ki is 4096.
- \`FLYWHEEL_KERNELS\`, which chooses the [native kernels](installation.md#native-kernels), has no flag. Nor have the variables of other
  programs that Flywheel reads: Hugging Face's (\`HF_HOME\`, \`HF_ENDPOINT\` …), AWS's, and \`PGSSLMODE\`.

${groups.join("\n")}`;
}

function flagOf(name: string, option: Option<unknown>): string {
  if (option.placeholder !== null) return `${flagName(name)} ${option.placeholder}`;
  return option.default === true ? `[no-]${flagName(name)}` : flagName(name);
}

function also(option: Option<unknown>): string {
  return option.alsoEnv.length === 0
    ? ""
    : ` ${option.alsoEnv.map((variable) => `\`${variable}\``).join(", ")} works too.`;
}

function defaultOf(name: string, { placeholder, default: initial }: Option<unknown>): string {
  if (placeholder === null) return initial ? " Default: on." : "";
  if (initial === null || ["[]", "{}"].includes(JSON.stringify(initial))) return "";
  const shown = name === "data" ? "~/.flywheel" : typeof initial === "string" ? initial : JSON.stringify(initial);
  return ` Default: \`${shown}\`.`;
}
