// Runs all checks against one replica. A group of checks that meets an unexpected answer reports it and leaves the other
// groups to go on.

import { checkAbort } from "./abort.check.ts";
import { checkAdapters } from "./adapters.check.ts";
import { Bench, type OurSide, type ServedModel } from "./bench.ts";
import { checkDeterminism } from "./determinism.check.ts";
import { type Finding, wrong } from "./finding.ts";
import { identify } from "./identity.check.ts";
import { checkLaunchFlags } from "./launch-flags.check.ts";
import { checkLogprobs } from "./logprobs.check.ts";
import { type Replica, ReplicaError } from "./replica.ts";
import { checkStops } from "./stop.check.ts";
import { checkText } from "./text.check.ts";

const GROUPS: readonly (readonly [string, (bench: Bench) => AsyncGenerator<Finding>])[] = [
  ["launch-flags", checkLaunchFlags],
  ["text", checkText],
  ["logprobs", checkLogprobs],
  ["stops", checkStops],
  ["determinism", checkDeterminism],
  ["adapters", checkAdapters],
  ["abort", checkAbort],
];

export interface Examination {
  findings: Finding[];
  /** null when the replica could not be examined. */
  served: ServedModel | null;
}

/** `onFinding` hears of each finding when it is made. */
export async function examine(
  replica: Replica,
  ours: OurSide,
  onFinding: (finding: Finding) => void,
): Promise<Examination> {
  const findings: Finding[] = [];
  const found = (finding: Finding) => {
    findings.push(finding);
    onFinding(finding);
  };
  let served: ServedModel | null = null;
  try {
    const identity = await identify(replica, ours.maxModelLen);
    for (const finding of identity.findings) found(finding);
    served = identity.served;
  } catch (error) {
    found(unexpected("reach", error));
  }
  if (served === null) return { findings, served };
  const bench = await Bench.open(replica, ours, served);
  for (const [name, check] of GROUPS) {
    try {
      for await (const finding of check(bench)) found(finding);
    } catch (error) {
      found(unexpected(name, error));
    }
  }
  return { findings, served };
}

function unexpected(check: string, error: unknown): Finding {
  if (!(error instanceof ReplicaError)) throw error;
  if (error.status === 0) return wrong(check, `no answer: ${error.message}`, "Check the address, and whether it runs.");
  return wrong(check, `answers ${error.status}: ${error.message}`, "Look at the replica's log.");
}
