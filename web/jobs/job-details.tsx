// Below the head of a job: its settings, why rollouts were left out, and warnings.
import { useMemo } from "preact/hooks";
import type { TrainingEvent, TrainingJob } from "../../src/client/types.ts";
import { number } from "../format.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { AgainPanel } from "./again-panel.tsx";
import { reasonsOf } from "./left-out.ts";

/** Sentences that are shown at once. */
const MOST_REASONS = 20;

export function JobDetails({ job, warnings }: { job: TrainingJob; warnings: readonly TrainingEvent[] }) {
  const config = JSON.stringify(job.config, null, 2);
  const reasons = useMemo(() => reasonsOf(job.report), [job.report]);
  return (
    <div class="job-details">
      {warnings.map(({ id, data }) => (
        <p key={id} class="chip warn">
          {data.message ?? data.code}
        </p>
      ))}
      <details>
        <summary>Configuration, as the server understood it</summary>
        <CopyButton text={config} what="the configuration" />
        <pre>{config}</pre>
      </details>
      <AgainPanel job={job} />
      {reasons.length > 0 && (
        <details>
          <summary>Left out, and why</summary>
          <ul>
            {reasons.slice(0, MOST_REASONS).map(({ status, message, count, group, trajectory }) => (
              <li key={`${status} ${message}`}>
                <b>
                  {number(count)} {status}
                </b>
                : {message}{" "}
                <span class="muted">
                  ({count > 1 && "first "}
                  <a href={`/jobs/${job.id}/${group}/${trajectory}`}>
                    group {group}, rollout {trajectory + 1}
                  </a>
                  )
                </span>
              </li>
            ))}
          </ul>
          {reasons.length > MOST_REASONS && (
            <p class="muted">and {number(reasons.length - MOST_REASONS)} more reasons</p>
          )}
        </details>
      )}
    </div>
  );
}
