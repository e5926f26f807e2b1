// One rollout of a job: what was said, what its tokens were worth, and how it differs from the other rollouts of its group.

import { number } from "../format.ts";
import { AskedGot } from "../jobs/asked-got.tsx";
import { Conversation } from "../jobs/conversation.tsx";
import { type Trajectory as RolloutData, rolloutPath } from "../jobs/records.ts";
import { RolloutDiff } from "../jobs/rollout-diff.tsx";
import { RolloutTokens } from "../jobs/rollout-tokens.tsx";
import { COLOURS, type Colour } from "../jobs/token-colours.ts";
import { UnderStep } from "../jobs/under-step.tsx";
import { useShortcuts } from "../keys.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { verdictWord } from "../policy/rows.ts";
import { useLocation, useRoute } from "../router.ts";
import { getJson } from "../server.ts";

export function Trajectory() {
  return (
    <NeedsScope scope="training" title="Rollout">
      <Rollout />
    </NeedsScope>
  );
}

function Rollout() {
  const { id, group, trajectory } = useRoute().params as Record<string, string>;
  const { query, route } = useLocation();
  const path = rolloutPath(id!, group!, trajectory!);
  const { data, error } = useQuery(path, (signal) => getJson<RolloutData>(path, { signal }));
  useTitle(`Rollout ${Number(trajectory) + 1} of group ${group}`);
  const here = `/jobs/${id}/${group}/`;
  const go = (to: number, change: Record<string, string> = {}) => {
    const next = new URLSearchParams({ ...query, ...change }).toString();
    if (data !== null && to >= 0 && to < data.size) route(`${here}${to}${next === "" ? "" : `?${next}`}`, true);
  };
  const at = Number(trajectory);
  useShortcuts([
    { keys: "[", what: "previous rollout of the group", run: () => go(at - 1) },
    { keys: "]", what: "next rollout of the group", run: () => go(at + 1) },
  ]);
  if (data === null || error !== null) {
    return (
      <section>
        <h1>Rollout</h1>
        {error === null ? <p class="muted">…</p> : <p role="alert">{error}</p>}
        <a href={`/jobs/${id}`}>The job</a>
      </section>
    );
  }
  // While the next one is on its way, all of the page is about the one before: never half of each.
  const own = rolloutPath(data.job_id, data.group, data.trajectory);
  const colour = COLOURS.find((name) => name === query.colour) ?? "mask";
  const other = /^\d+$/.test(query.diff ?? "") ? query.diff! : null;
  return (
    <div class="job">
      <div class="row">
        <a href={`/jobs/${id}`}>Job {id!.slice(0, 8)}</a>
        <h1>
          <a href={`/jobs/${id}/${data.group}`}>Group {data.group}</a>, rollout {data.trajectory + 1} of {data.size}
        </h1>
        <button type="button" disabled={at === 0} onClick={() => go(at - 1)} title="[">
          Previous
        </button>
        <button type="button" disabled={at + 1 >= data.size} onClick={() => go(at + 1)} title="]">
          Next
        </button>
      </div>
      <Facts data={data} />
      <h2>Conversation</h2>
      <Conversation items={data.messages_and_choices} wanted={query.text ?? ""} />
      <h2>Tokens</h2>
      <RolloutTokens
        path={own}
        sequences={data.sequences}
        isTrained={data.status === "trained" && data.job_status === "COMPLETED"}
        colour={colour}
        onColour={(next: Colour) => go(at, { colour: next })}
      />
      {data.status === "trained" && data.job_status === "COMPLETED" && (
        <>
          <div class="row">
            <button
              type="button"
              aria-pressed={query.asked === "yes"}
              onClick={() => go(at, { asked: query.asked === "yes" ? "" : "yes" })}
            >
              Asked and got
            </button>
            <a href={`/jobs/${id}/lab?at=${data.group}.${data.trajectory}`}>Loss lab</a>
          </div>
          {query.asked === "yes" && <AskedGot key={own} id={data.job_id} path={own} sequences={data.sequences} />}
        </>
      )}
      <label>
        Difference to{" "}
        <select value={other ?? ""} onChange={(event) => go(at, { diff: event.currentTarget.value })}>
          <option value="">none</option>
          {Array.from(
            { length: data.size },
            (_, i) => i !== data.trajectory && <option value={i}>rollout {i + 1}</option>,
          )}
        </select>
      </label>
      {other !== null && <RolloutDiff path={rolloutPath(data.job_id, data.group, other)} sequences={data.sequences} />}
      <UnderStep data={data} step={query.under ?? ""} onStep={(under) => go(at, { under })} />
      <More data={data} />
    </div>
  );
}

function Facts({ data: { status, job_status, message, reward, advantage, weight, from_step } }: { data: RolloutData }) {
  const isTrained = status === "trained" && job_status === "COMPLETED";
  const facts = { reward, advantage, weight, "from step": from_step };
  return (
    <>
      <p class="row num">
        <span class={`chip ${isTrained ? "good" : "warn"}`}>
          {status === null ? "no verdict yet" : verdictWord(status, job_status)}
        </span>
        {Object.entries(facts)
          .flatMap(([name, value]) => (value === null ? [] : `${name} ${number(value)}`))
          .join(" · ")}
      </p>
      {message !== null && <p>{message}</p>}
    </>
  );
}

/** What else was sent with the rollout; what is empty is left out. */
function More({ data: { metadata, metrics, logs, tools, exceptions } }: { data: RolloutData }) {
  return (
    <>
      {Object.entries({ metadata, metrics, logs, tools, exceptions }).map(
        ([name, value]) =>
          value !== null &&
          Object.keys(value).length > 0 && (
            <details key={name} open={name !== "tools"}>
              <summary>{name}</summary>
              <pre>{JSON.stringify(value, null, 1)}</pre>
            </details>
          ),
      )}
    </>
  );
}
