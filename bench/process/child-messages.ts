// Messages between the benchmark and a measured process (child.ts).

export interface Call {
  id: number;
  method: string;
  args: unknown[];
}

/** Memory of the answering process: now, and its peak so far. */
export interface Memory {
  residentBytes: number;
  peakBytes: number;
}

export type Answer = { id: number; memory: Memory } & ({ ok: true; value: unknown } | { ok: false; error: string });

/** The first call. Its argument is the options. */
export const CREATE = "create";
