// The tokens of a trajectory that was left out before it was tokenised, because its advantage is zero or it is stale. Its record
// has none, so it is tokenised when somebody looks at it.

import { givingWay } from "../../pacing/turns.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { BaseModel } from "../../training/base-models.ts";
import type { RlConfig } from "../../training/config.ts";
import { judge } from "../../training/data/verdict.ts";
import type { KeptSequence } from "../../training/records/prepared-record.ts";
import type { KeptTrajectory } from "../../training/records/record-reader.ts";
import { parseValue } from "./json-value.ts";
import { groupPartFrom } from "./trajectory.wire.ts";
import { noIssues } from "./validation.ts";

const EARLY = new Set(["zero_advantage", "stale"]);

/** None for verdicts that came from its tokens, and for a record that this version cannot read. */
export async function leftOutTokens(
  job: JobRecord,
  { group, text, verdict }: Pick<KeptTrajectory, "group" | "text" | "verdict">,
  base: BaseModel,
): Promise<KeptSequence[]> {
  if (job.kind !== "rl" || verdict === null || !EARLY.has(verdict.status)) return [];
  const issues = noIssues();
  const part = groupPartFrom(parseValue(text), ["trajectory_groups", group.group, "trajectories", 0], issues);
  if (part === undefined || issues.any || !("histories" in part)) return [];
  const place = { group: group.group, trajectory: 0 };
  const { sequences } = await judge(part, place, 0, {
    encoder: base.encoder,
    config: { ...(JSON.parse(job.config) as RlConfig), maxStepsOffPolicy: null },
    currentStep: job.fromStep ?? 0,
    preview: true,
    maxTokens: base.maxSequenceLength,
    giveWay: givingWay(),
  });
  return sequences.map(({ ids, mask, oldLogprobs }) => ({
    ...{ ids, mask, firstRow: null },
    logprobs: oldLogprobs.map((value) => (Number.isNaN(value) ? null : value)),
  }));
}
