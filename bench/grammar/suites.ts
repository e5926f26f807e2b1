// The suites: public ones, read from a folder that holds checkouts of them (nothing of them is part of this repository), and
// the large schemas.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LARGE_NAMES, largeCase } from "./large-schemas.ts";
import { type JsonNode, readPythonJson } from "./python-json.ts";

const PUBLIC = ["test-suite", "maskbench", "schemastore"] as const;
type PublicName = (typeof PUBLIC)[number];
/** "large" is made by large-schemas.ts. */
export const SUITES = [...PUBLIC, "large"] as const;
export type SuiteName = (typeof SUITES)[number];

export interface SchemaCase {
  suite: SuiteName;
  /** File, and the case's number where a file has several. */
  id: string;
  /** JSON text, as it is in the file but for its layout. */
  schema: string;
  instances: readonly { text: string; valid: boolean }[];
}

/** Under the folder the user names. */
const FOLDERS: Readonly<Record<PublicName, string>> = {
  "test-suite": "JSON-Schema-Test-Suite/tests",
  maskbench: "jsonschemabench/maskbench/data",
  schemastore: "schemastore/src/schemas/json",
};
/** Their core: optional/ is left out. */
const DRAFTS = ["draft7", "draft2019-09", "draft2020-12"];

/** Files of a suite, or `sample` of them at even distances; throws when the folder does not hold the suite. */
export function suiteFiles(root: string, suite: SuiteName, sample: number | null): string[] {
  if (suite === "large") return LARGE_NAMES.slice(0, sample ?? LARGE_NAMES.length);
  const folder = join(root, FOLDERS[suite]);
  if (!existsSync(folder)) throw new Error(`${root} does not hold ${FOLDERS[suite]}`);
  const folders = suite === "test-suite" ? DRAFTS.map((draft) => join(folder, draft)) : [folder];
  const files = folders.flatMap((each) =>
    readdirSync(each)
      .filter((name) => name.endsWith(".json"))
      .sort()
      .map((name) => join(each, name)),
  );
  if (sample === null || sample >= files.length) return files;
  return Array.from({ length: sample }, (_, i) => files[Math.floor((i * files.length) / sample)]!);
}

export function readCases(root: string, suite: SuiteName, file: string): SchemaCase[] {
  if (suite === "large") return [{ suite, ...largeCase(file) }];
  const id = file.slice(join(root, FOLDERS[suite]).length + 1);
  const content = readPythonJson(readFileSync(file, "utf8").replace(/^\ufeff/, ""));
  if (suite === "schemastore") return [{ suite, id, schema: content.text, instances: [] }];
  const cases = suite === "maskbench" ? [content] : content.items;
  return cases.map((each, index) => ({
    suite,
    id: suite === "maskbench" ? id : `${id}#${index}`,
    schema: each.members.get("schema")!.text,
    instances: each.members.get("tests")!.items.map(readTest),
  }));
}

function readTest({ members }: JsonNode): { text: string; valid: boolean } {
  return { text: members.get("data")!.text, valid: members.get("valid")!.text === "true" };
}
