// Two rollouts of a group, token by token or word by word: what both have is a longest common subsequence.
import type { Sequence } from "./records.ts";

export interface DiffRow {
  kind: "both" | "mine" | "theirs";
  text: string;
}

/** Pairs of tokens to compare, at the most: a table of 4 bytes each, filled in some hundredths of a second. */
const MOST_PAIRS = 2 ** 22;

/** `theirs` comes before `mine` where they differ; null if too much of them differs. */
export function tokenDiff(theirs: readonly Sequence[], mine: readonly Sequence[]): DiffRow[] | null {
  return listDiff(stringsOf(theirs), stringsOf(mine));
}

/** The same for words. */
export function wordDiff(theirs: string, mine: string): DiffRow[] | null {
  return listDiff(theirs.split(/(?<=\s)(?=\S)/), mine.split(/(?<=\s)(?=\S)/));
}

function listDiff(a: readonly string[], b: readonly string[]): DiffRow[] | null {
  // Rollouts of a group begin with the same prompt, and may end alike: neither needs a table.
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [m, n] = [a.length - start - end, b.length - start - end];
  if (m * n > MOST_PAIRS) return null;
  // common[i * (n + 1) + j]: length of the longest subsequence that a from i on and b from j on share
  const common = new Uint32Array((m + 1) * (n + 1));
  const at = (i: number, j: number) => common[i * (n + 1) + j]!;
  for (let i = m - 1; i >= 0; i--) {
    for (let j = n - 1; j >= 0; j--) {
      const isSame = a[start + i] === b[start + j];
      common[i * (n + 1) + j] = isSame ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const rows: DiffRow[] = [];
  const add = (kind: DiffRow["kind"], text: string) => {
    const last = rows.at(-1);
    if (last?.kind === kind) last.text += text;
    else rows.push({ kind, text });
  };
  for (const text of a.slice(0, start)) add("both", text);
  for (let i = 0, j = 0; i < m || j < n; ) {
    const [left, right] = [a[start + i]!, b[start + j]!];
    if (i < m && j < n && left === right) {
      add("both", left);
      i += 1;
      j += 1;
    } else if (i < m && (j === n || at(i + 1, j) >= at(i, j + 1))) {
      add("theirs", left);
      i += 1;
    } else {
      add("mine", right);
      j += 1;
    }
  }
  for (const text of b.slice(b.length - end)) add("both", text);
  return rows;
}

function stringsOf(sequences: readonly Sequence[]): string[] {
  return sequences.flatMap(({ tokens, token_strings }) => tokens.map((id, i) => token_strings[i] ?? `⟨${id}⟩`));
}
