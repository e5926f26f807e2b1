// The generated pages of docs/reference: one table each, straight from the table in the code.

import type { Option } from "../../src/config/option.ts";
import { envName, flagName, OPTIONS } from "../../src/config/options.ts";
import { ERRORS, type ErrorRow } from "../../src/errors/error-table.ts";
import { METRICS, type MetricRow } from "../../src/observe/metric-table.ts";

const GENERATED = "<!-- Generated from the code; `UPDATE_DOCS=1 npx vitest run test/docs` writes it anew. -->";

export function errorsPage(): string {
  const rows = Object.entries(ERRORS as Record<string, ErrorRow>)
    .sort(([, a], [, b]) => a.status - b.status)
    .map(([code, row]) => `| ${row.status} | \`${row.type}\` | ${code} | ${cell(row.meaning)} | ${cell(row.fix)} |`);
  return `# Errors

${GENERATED}

Every error has the same body, on every route and also on unknown paths. Those, wrong methods and the training routes carry
\`detail\` besides:

\`\`\`json
{"error": {"message": "…", "type": "BadRequestError", "param": "temperature", "code": 400}}
\`\`\`

- \`code\` is the HTTP status. \`param\` is the field at fault: a plain name for rules between fields and bounds,
  \`body.path.to.field\` for fields of the wrong shape, null when no single field is and for
  some bounds, which the message states with their field.
- 401 and 403 carry \`WWW-Authenticate\`; 429 and 503 carry \`Retry-After\`, all but quota_exceeded. That one, 500 and 501 carry
  \`x-should-retry: false\`: sending the request again cannot help, and SDKs do not.
- A request is checked completely before the engine sees it, also with \`stream: true\`: a mistake is a real 4xx, but for
  contradictory_controls and constraint_failed, which are found while generating.
  After that a stream can only fail with an event \`data: {"error": …}\`, followed by \`data: [DONE]\`.
- The name in the third column is for talking about errors (and the \`code\` label of
  \`flywheel_rejected_requests_total\`); it is not on the wire.

| Status | \`type\` | Name | Meaning | Fix |
|---|---|---|---|---|
${rows.join("\n")}
`;
}

export function metricsPage(): string {
  const rows = Object.entries(METRICS as Record<string, MetricRow>).map(
    ([name, row]) => `| \`${name}\` | ${row.kind} | ${row.labels.join(", ")} | ${cell(row.help)} |`,
  );
  return `# Metrics

${GENERATED}

\`GET /metrics\` answers in the Prometheus text format, without a token. The names are vLLM's, so that its dashboards
work; \`engine\` is always \`0\`, and \`model_name\` is always the base model, also for adapters and policies. Gauges and
token counters are read from the engine when scraped; the other numbers are recorded when a request ends, whether it finished,
failed or was abandoned. Beside the table there are \`process_*\` and \`nodejs_*\`: CPU time, memory, event-loop lag.

| Name | Kind | Labels | Meaning |
|---|---|---|---|
${rows.join("\n")}
`;
}

export function flagsPage(): string {
  const entries = Object.entries(OPTIONS as unknown as Record<string, Option<unknown>>);
  const groups = [...new Set(entries.map(([, option]) => option.group))].map((group) => {
    const rows = entries
      .filter(([, option]) => option.group === group)
      .map(
        ([name, option]) =>
          `| ${flagCell(name, option)} | \`${envName(name)}\`${alsoEnv(option)} | ${defaultCell(name, option)} | ${cell(option.help)} |`,
      );
    return `## ${group}\n\n| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Options of \`flywheel serve\`

${GENERATED}

Every option can be given as a flag, an environment variable or a line of a YAML file (\`--config FILE.yaml\` or
\`FLYWHEEL_CONFIG\`), in this order of precedence. vLLM's name is used wherever vLLM has the option. In YAML the key is the flag's name without the
dashes in front (\`max-model-len: 4096\`). Lists are repeated flags, comma-separated variables, or YAML lists. Numbers
may be written 4k (4000) or 4Ki (4096). A switch is turned off with \`--no-NAME\`.

${groups.join("\n")}`;
}

function flagCell(name: string, option: Option<unknown>): string {
  const flag = option.placeholder === null && option.default === true ? `no-${flagName(name)}` : flagName(name);
  return `\`--${flag}${option.placeholder === null ? "" : ` ${option.placeholder.replaceAll("|", "\\|")}`}\``;
}

function alsoEnv(option: Option<unknown>): string {
  return option.alsoEnv.map((variable) => `, \`${variable}\``).join("");
}

function defaultCell(name: string, option: Option<unknown>): string {
  if (name === "data") return "`~/.flywheel`";
  const empty =
    option.default === null || JSON.stringify(option.default) === "[]" || JSON.stringify(option.default) === "{}";
  return empty ? "" : `\`${typeof option.default === "string" ? option.default : JSON.stringify(option.default)}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
