// Generates the pages of docs/reference that are tables in the code.

import type { Option } from "../../src/config/option.ts";
import { envName, flagName, OPTIONS } from "../../src/config/options.ts";
import { ERRORS, type ErrorRow } from "../../src/errors/error-table.ts";
import { METRICS, type MetricRow } from "../../src/observe/metric-table.ts";

const GENERATED = "<!-- Generated from the code. To update: UPDATE_DOCS=1 npx vitest run test/docs -->";

export function errorsPage(): string {
  const rows = Object.entries(ERRORS as Record<string, ErrorRow>)
    .sort(([, a], [, b]) => a.status - b.status)
    .map(([code, row]) => `| ${row.status} | \`${row.type}\` | ${code} | ${cell(row.meaning)} | ${cell(row.fix)} |`);
  return `# Errors

${GENERATED}

Every error has the same body on every route. Unknown paths, wrong methods and the training routes also carry \`detail\`:

\`\`\`json
{"error": {"message": "…", "type": "BadRequestError", "param": "temperature", "code": 400}}
\`\`\`

- \`code\` is the HTTP status.
- \`param\` names the invalid field. It is \`body.path.to.field\` for a field of the wrong shape, and a plain name for bounds and for
  rules between fields. It is null if no single field is at fault, and for some bounds; their message names the field.
- 401 and 403 carry \`WWW-Authenticate\`. 429 and 503 carry \`Retry-After\`, except quota_exceeded.
- quota_exceeded, 500 and 501 carry \`x-should-retry: false\`. A retry cannot help, and SDKs do not try.
- A request is checked completely before the engine sees it, even with \`stream: true\`. So a mistake is a real 4xx. The exceptions
  are contradictory_controls and constraint_failed, which are found during generation. Once a stream has started, it can fail only
  with an event \`data: {"error": …}\`, followed by \`data: [DONE]\`.
- The name in the third column is not on the wire. It is the \`code\` label of \`flywheel_rejected_requests_total\`.

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

\`GET /metrics\` answers in the Prometheus text format and needs no token. The names are vLLM's, so its dashboards work. \`engine\` is
always \`0\`. \`model_name\` is always the base model, even for adapters and policies.

Gauges and token counters are read from the engine at each scrape. Other metrics are recorded when a request ends, whether it
finished, failed or was abandoned. The page also has \`process_*\` and \`nodejs_*\` metrics: CPU time, memory, event-loop lag.

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

You can set every option with a flag, an environment variable or a line of a YAML file (\`--config FILE.yaml\` or \`FLYWHEEL_CONFIG\`).
A flag beats the variable, and the variable beats the file. Options that vLLM has keep vLLM's names.

* In YAML, the key is the flag without its leading dashes: \`max-model-len: 4096\`.
* For a list, repeat the flag, separate values in the variable with commas, or write a YAML list.
* Numbers may have suffixes: 4k is 4000, 4Ki is 4096.
* \`--no-NAME\` turns a switch off.
* One setting is a variable only: \`FLYWHEEL_KERNELS=graph\` turns off the [native kernels](installation.md#native-kernels).

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
