// Code → runs of one kind. Loaded when there is code.
import * as grammars from "@speed-highlight/core/languages";
import { tokenizeWith } from "@speed-highlight/core/tokenize";

/** What a style sheet tells apart. */
export type Kind = "word" | "text" | "number" | "comment" | "name" | "type" | "added" | "removed";

const KINDS: Readonly<Record<string, Kind>> = {
  ...{ kwd: "word", section: "word", str: "text", esc: "text", num: "number", bool: "number", cmnt: "comment" },
  ...{ func: "name", var: "name", class: "type", type: "type", insert: "added", deleted: "removed", err: "removed" },
};

/** `grammar` is a name in languages.ts. Together the runs are the text. */
export function runsOf(text: string, grammar: string): [string, Kind | null][] {
  const runs: [string, Kind | null][] = [];
  const languages = grammars as unknown as Record<string, Parameters<typeof tokenizeWith>[1]>;
  tokenizeWith(
    text,
    languages[grammar]!,
    (part, type) => {
      const kind = KINDS[type ?? ""] ?? null;
      const last = runs.at(-1);
      if (last?.[1] === kind) last[0] += part;
      else if (part !== "") runs.push([part, kind]);
    },
    { languages: languages as NonNullable<Parameters<typeof tokenizeWith>[3]>["languages"] & {} },
  );
  return runs;
}
