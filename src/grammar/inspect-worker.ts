// Entry of the thread that looks at constraints for people: which tokens were legal at each position of an output. It has
// a vocabulary of its own, so neither the engine nor requests wait for it, and it can be ended at any moment.

import { parentPort, workerData } from "node:worker_threads";
import { yieldToOthers } from "./compile-effort.ts";
import { GrammarConstraintFactory } from "./match/constraint-factory.ts";
import { BrokenConstraintError, type SequenceConstraint } from "./match/sequence-constraint.ts";
import type { TokenVocabulary } from "./match/token-vocabulary.ts";

export interface InspectJob {
  /** Key of a compiled grammar. */
  grammar: string;
  /** Ids that may end the output. */
  stopTokenIds: readonly number[];
  tokens: readonly number[];
}

/** A position of the output, before its token. */
export interface InspectedPosition {
  /** Number of legal tokens. */
  legal: number;
  /** Only one continuation was legal, so the token was not sampled. */
  forced: boolean;
  /** The output could have ended here. */
  mayEnd: boolean;
  /** Whether its token is legal. Positions after one that is not are unknown. */
  allowed: boolean;
  /** Legal tokens as a bitset; null = all. */
  mask: Int32Array | null;
}

export type InspectResult =
  | { positions: InspectedPosition[]; mayEnd: boolean }
  | { refused: string }
  | { fault: string };

if (parentPort === null) throw new Error("grammar/inspect-worker must be started as a worker thread");
const port = parentPort;
const { size } = workerData as TokenVocabulary;
const factory = new GrammarConstraintFactory(workerData as TokenVocabulary);
yieldToOthers();
port.on("message", (job: InspectJob) => port.postMessage(inspect(job)));

function inspect({ grammar, stopTokenIds, tokens }: InspectJob): InspectResult {
  try {
    const constraint = factory.create(grammar, stopTokenIds, false);
    const positions: InspectedPosition[] = [];
    for (const token of tokens) {
      const position = look(constraint, stopTokenIds, token);
      positions.push(position);
      if (!position.allowed) return { positions, mayEnd: false };
      constraint.accept(token);
    }
    return { positions, mayEnd: mayEnd(constraint.mask(), stopTokenIds) };
  } catch (error) {
    if (error instanceof BrokenConstraintError) return { refused: error.message };
    return { fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function look(constraint: SequenceConstraint, stopTokenIds: readonly number[], token: number): InspectedPosition {
  const mask = constraint.mask()?.slice() ?? null;
  const legal = mask === null ? size : mask.reduce((sum, word) => sum + bits(word), 0);
  const ends = mayEnd(mask, stopTokenIds);
  return { legal, forced: legal === 1 && !ends, mayEnd: ends, allowed: has(mask, token), mask };
}

function mayEnd(mask: Int32Array | null, stopTokenIds: readonly number[]): boolean {
  return mask === null || stopTokenIds.some((id) => has(mask, id));
}

function has(mask: Int32Array | null, id: number): boolean {
  return mask === null || ((mask[id >>> 5] ?? 0) & (1 << (id & 31))) !== 0;
}

function bits(word: number): number {
  let left = word;
  let count = 0;
  for (; left !== 0; left &= left - 1) count++;
  return count;
}
