// What would become of a job's rollouts now, beside what became of them.

/** A rollout, or an example, with its verdict. */
export interface Outcome {
  group?: number;
  trajectory?: number;
  example?: number;
  status: string;
  message: string | null;
  advantage?: number;
}

export interface Outcomes {
  trajectories?: readonly Outcome[];
  examples?: readonly Outcome[];
}

export interface Change {
  group: number;
  trajectory: number;
  before: string;
  now: string;
  message: string | null;
}

export interface Comparison {
  /** Number of rollouts by verdict. */
  before: Record<string, number>;
  now: Record<string, number>;
  /** Rollouts with another verdict. */
  changes: Change[];
  /** Rollouts with the same verdict and another advantage. */
  otherAdvantages: number;
}

export function compareOutcomes(before: Outcomes | null, now: Outcomes): Comparison {
  const [old, fresh] = [listOf(before), listOf(now)];
  const known = new Map(old.map((one) => [placeOf(one), one]));
  const comparison: Comparison = { before: countsOf(old), now: countsOf(fresh), changes: [], otherAdvantages: 0 };
  for (const one of fresh) {
    const was = known.get(placeOf(one));
    if (was === undefined) continue;
    if (was.status !== one.status) {
      const { group = one.example ?? 0, trajectory = 0, status, message } = one;
      comparison.changes.push({ group, trajectory, before: was.status, now: status, message });
    } else if (was.advantage !== one.advantage) comparison.otherAdvantages += 1;
  }
  return comparison;
}

function listOf(outcomes: Outcomes | null): readonly Outcome[] {
  return outcomes?.trajectories ?? outcomes?.examples ?? [];
}

function placeOf({ group, trajectory, example }: Outcome): string {
  return `${group ?? example} ${trajectory ?? 0}`;
}

function countsOf(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
