// The command line of `npm run bench:grammar`.

import { parseArgs } from "node:util";
import { ENGINES, type EngineName } from "./engine.ts";
import { SUITES, type SuiteName } from "./suites.ts";
import { VOCABULARIES, type VocabularyName } from "./vocabulary.ts";

export interface Flags {
  suites: string;
  only: readonly SuiteName[];
  /** Files per suite; null = all. */
  sample: number | null;
  engines: readonly EngineName[];
  vocabularies: readonly VocabularyName[];
  jsonOptions: Readonly<Record<string, unknown>>;
  limitSeconds: number;
  jobs: number;
  /** Where every verdict goes, one JSON object per line; null = nowhere. */
  list: string | null;
  /** Folder for the page; null = print it only. */
  out: string | null;
}

export const USAGE = `npm run bench:grammar -- --suites DIR [options]
  --suites DIR          a folder with checkouts of JSON-Schema-Test-Suite, jsonschemabench and schemastore (large needs none)
  --only LIST           some of ${SUITES.join(",")} (default: all)
  --sample N            N files of each suite, at even distances (default: all)
  --engines LIST        some of ${ENGINES.join(",")} (default: all)
  --vocabulary LIST     some of ${VOCABULARIES.join(",")} (default: all)
  --option NAME=JSON    a setting of Flywheel's JSON translation, such as closedObjects=true; may be repeated
  --limit SECONDS       longest time for one schema and its instances (default: 20)
  --jobs N              schemas measured at once (default: 1)
  --list FILE           every verdict, one JSON object per line
  --out DIR             also write the page to DIR/<date>-<machine>-grammar.md`;

/** Throws with a message for the user. */
export function readFlags(args: readonly string[]): Flags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      suites: { type: "string" },
      only: { type: "string" },
      sample: { type: "string" },
      engines: { type: "string" },
      vocabulary: { type: "string" },
      option: { type: "string", multiple: true },
      limit: { type: "string" },
      jobs: { type: "string" },
      list: { type: "string" },
      out: { type: "string" },
    },
  });
  const only = some("--only", values.only, SUITES);
  if (values.suites === undefined && only.join() !== "large") throw new Error("--suites is required");
  return {
    suites: values.suites ?? "",
    only,
    sample: values.sample === undefined ? null : count("--sample", values.sample),
    engines: some("--engines", values.engines, ENGINES),
    vocabularies: some("--vocabulary", values.vocabulary, VOCABULARIES),
    jsonOptions: Object.fromEntries((values.option ?? []).map(setting)),
    limitSeconds: count("--limit", values.limit ?? "20"),
    jobs: count("--jobs", values.jobs ?? "1"),
    list: values.list ?? null,
    out: values.out ?? null,
  };
}

function setting(text: string): [name: string, value: unknown] {
  const at = text.indexOf("=");
  if (at <= 0) throw new Error(`--option takes NAME=JSON; found "${text}"`);
  return [text.slice(0, at), JSON.parse(text.slice(at + 1))];
}

function count(flag: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`${flag} takes a positive whole number; found "${text}"`);
  return Number(text);
}

function some<T extends string>(flag: string, text: string | undefined, known: readonly T[]): readonly T[] {
  if (text === undefined) return known;
  return text.split(",").map((name) => {
    const found = known.find((each) => each === name);
    if (found === undefined) throw new Error(`${flag} takes ${known.join(", ")}; found "${name}"`);
    return found;
  });
}
