// Two tries of a group, token by token: what both have is a longest common subsequence.
import type { Sequence } from "./trajectory.ts";

export interface DiffRow {
  kind: "both" | "mine" | "theirs";
  text: string;
}

/** Pairs of tokens to compare, at the most: a table of 4 bytes each, filled in a tenth of a second. */
const MOST_PAIRS = 2 ** 24;

/** `theirs` comes before `mine` where they differ; null if too much of them differs. */
export function tokenDiff(theirs: readonly Sequence[], mine: readonly Sequence[]): DiffRow[] | null {
  const [a, b] = [stringsOf(theirs), stringsOf(mine)];
  // Tries of a group begin with the same prompt, which needs no table.
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  const [m, n] = [a.length - start, b.length - start];
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
  return rows;
}

function stringsOf(sequences: readonly Sequence[]): string[] {
  return sequences.flatMap(({ tokens, token_strings }) => tokens.map((id, i) => token_strings[i] ?? `⟨${id}⟩`));
}
