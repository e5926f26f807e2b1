// What a job made of its data: a verdict, an advantage, a weight and token sequences for every trajectory. There is a
// line of sequences per trajectory and a row of verdicts per group.

import { givingWay } from "../../pacing/turns.ts";
import type { TakeBytes } from "../account.ts";
import type { TokenSequence } from "../data/token-sequence.ts";
import { LineFileWriter } from "./line-file.ts";

/** A trajectory or example as it was prepared. */
export interface PreparedRollout {
  /** Index of its group; examples are groups of one. */
  group: number;
  status: string;
  reason: string | null;
  advantage: number;
  /** Of each of its tokens; 0 when it is not trained. */
  weight: number;
  tokens: number;
  trainableTokens: number;
  sequences: readonly (TokenSequence & { trained: TrainedPlace | null })[];
}

/** Where and with what a sequence was trained. */
export interface TrainedPlace {
  /** Of its trained tokens in the trainer's numbers. */
  firstRow: number;
  /** Index of its gradient step. */
  step: number;
  /** Trained tokens of that step; its loss is their mean. */
  stepTokens: number;
}

export type RolloutVerdict = Omit<PreparedRollout, "group" | "sequences">;

export interface PreparedRow {
  /** Number of the line of its first trajectory. */
  line: number;
  /** Files have them under this name. */
  tries: RolloutVerdict[];
}

/** A sequence of a line. null = no log-probability. */
export interface KeptSequence {
  ids: number[];
  mask: (0 | 1)[];
  logprobs: (number | null)[];
  /** Of its trained tokens in the trainer's numbers; null = not trained. */
  firstRow: number | null;
  /** Absent if it was not trained, and in records of earlier versions. */
  step?: number;
  stepTokens?: number;
}

/** The rollouts are in the order of their groups. Groups without any have a row too. Returns the size of the file. */
export async function writePrepared(
  path: string,
  rollouts: Iterable<PreparedRollout>,
  groups: number,
  take: TakeBytes,
): Promise<number> {
  const file = await LineFileWriter.create(path, take);
  const giveWay = givingWay();
  let row: PreparedRow = { line: 0, tries: [] };
  let group = 0;
  const rowsUntil = async (next: number) => {
    for (; group < next; group++) {
      await file.row(JSON.stringify(row));
      row = { line: file.lines, tries: [] };
    }
  };
  try {
    for (const { group: own, sequences, ...verdict } of rollouts) {
      await giveWay();
      await rowsUntil(own);
      row.tries.push(verdict);
      await file.line(JSON.stringify(sequences.map(kept)));
    }
    await rowsUntil(groups);
    await file.finish();
    return file.bytes;
  } catch (error) {
    await file.abandon();
    throw error;
  }
}

/** JSON has no NaN, so an unknown log-probability becomes null. */
function kept({ ids, mask, oldLogprobs, trained }: PreparedRollout["sequences"][number]): object {
  return { ids, mask, logprobs: oldLogprobs, ...(trained ?? { firstRow: null }) };
}
