// What the benchmark and a measured process (child.ts) say to each other.

export interface Call {
  id: number;
  method: string;
  args: unknown[];
}

/** Memory of the answering process: now, and at most so far. */
export interface Memory {
  residentBytes: number;
  peakBytes: number;
}

export type Answer = { id: number; memory: Memory } & ({ ok: true; value: unknown } | { ok: false; error: string });

/** The first call; its argument are the options. */
export const CREATE = "create";
