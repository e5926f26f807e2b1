// What an array may hold at each position, and how many items it may have.

import type { Schema } from "../keywords.ts";

export interface Positions {
  /** One schema per position. */
  readonly prefix: readonly Schema[];
  /** The schema of all positions after the prefix. */
  readonly rest: Schema;
  readonly min: number;
  /** null = no limit. */
  readonly max: number | null;
  /** Whether all items must differ. */
  readonly distinct: boolean;
}
