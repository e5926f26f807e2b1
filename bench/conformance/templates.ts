// Compares our template runtime with Python's Jinja, byte for byte: every template of a folder over fixed conversations.
//
//   npm run conformance:templates -- --templates DIR --python PYTHON
//
// Where Python fails, we must fail too. Where it prints memory addresses, nothing is compared.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Template } from "../../src/text/template/template.ts";
import { CONVERSATIONS } from "./conversations.ts";

type Result = { text: string } | { error: string };

const SCRIPT = fileURLToPath(new URL("../../../../bench/conformance/jinja-judge.py", import.meta.url));
/** The same date as Python's side prints. */
const TODAY = [["strftime_now", () => "26 Jul 2026"]] as const;

const { values } = parseArgs({
  options: { templates: { type: "string" }, python: { type: "string", default: "python3" } },
});
if (!values.templates) throw new Error("--templates must name a folder with .jinja files");
const folder = values.templates;
const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".jinja"))
  .sort();
const sources = files.map((file) => readFileSync(join(folder, file), "utf8"));

const expected = judge(sources);
let agreeing = 0;
let cases = 0;
for (const [i, source] of sources.entries()) {
  const differing = CONVERSATIONS.flatMap((variables, at) => {
    const [python, ours] = [expected[i]![at]!, render(source, variables)];
    return agrees(python, ours) ? [] : [{ at, python, ours }];
  });
  cases += CONVERSATIONS.length - differing.length;
  if (differing.length === 0) agreeing++;
  else console.log(files[i], `differs in ${differing.length}, first:`, JSON.stringify(differing[0], null, 1));
}
console.log(`templates that agree in every conversation: ${agreeing} of ${sources.length}`);
console.log(`conversations that agree: ${cases} of ${sources.length * CONVERSATIONS.length}`);

function judge(templates: readonly string[]): Result[][] {
  const { stdout, stderr, status } = spawnSync(values.python, [SCRIPT], {
    input: JSON.stringify({ templates, variables: CONVERSATIONS }),
    encoding: "utf8",
    maxBuffer: 2 ** 30,
  });
  if (status !== 0) throw new Error(`Python failed: ${stderr}`);
  return JSON.parse(stdout);
}

function render(source: string, variables: Record<string, unknown>): Result {
  try {
    return { text: new Template(source).render(variables, undefined, TODAY) };
  } catch (error) {
    return { error: String(error) };
  }
}

function agrees(python: Result, ours: Result): boolean {
  if ("error" in python || "error" in ours) return "error" in python && "error" in ours;
  return python.text === ours.text || / at 0x[0-9a-f]+>/.test(python.text);
}
