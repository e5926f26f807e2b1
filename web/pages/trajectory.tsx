// One try of a job: what was said, what its tokens were worth, and how it differs from the other tries of its group.

import { number } from "../format.ts";
import { AskedGot } from "../jobs/asked-got.tsx";
import { Conversation } from "../jobs/conversation.tsx";
import { tryPath } from "../jobs/records.ts";
import { COLOURS, type Colour } from "../jobs/token-colours.ts";
import type { Trajectory as Try } from "../jobs/trajectory.ts";
import { TryDiff } from "../jobs/try-diff.tsx";
import { TryTokens } from "../jobs/try-tokens.tsx";
import { UnderStep } from "../jobs/under-step.tsx";
import { useShortcuts } from "../keys.ts";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { useLocation, useRoute } from "../router.ts";
import { getJson } from "../server.ts";

export function Trajectory() {
  const { id, group, trajectory } = useRoute().params as Record<string, string>;
  const { query, route } = useLocation();
  const path = tryPath(id!, group!, trajectory!);
  const { data, error } = useQuery(path, (signal) => getJson<Try>(path, { signal }));
  useTitle(`Try ${Number(trajectory) + 1} of group ${group}`);
  const here = `/jobs/${id}/${group}/`;
  const go = (to: number, change: Record<string, string> = {}) => {
    const next = new URLSearchParams({ ...query, ...change }).toString();
    if (data !== null && to >= 0 && to < data.size) route(`${here}${to}${next === "" ? "" : `?${next}`}`, true);
  };
  const at = Number(trajectory);
  useShortcuts([
    { keys: "[", what: "previous try of the group", run: () => go(at - 1) },
    { keys: "]", what: "next try of the group", run: () => go(at + 1) },
  ]);
  if (data === null || error !== null) {
    return (
      <section>
        <h1>Try</h1>
        {error === null ? <p class="muted">…</p> : <p role="alert">{error}</p>}
        <a href={`/jobs/${id}`}>The job</a>
      </section>
    );
  }
  const colour = COLOURS.find((name) => name === query.colour) ?? "mask";
  const other = /^\d+$/.test(query.diff ?? "") ? query.diff! : null;
  return (
    <div class="job">
      <div class="row">
        <a href={`/jobs/${id}`}>Job {id!.slice(0, 8)}</a>
        <h1>
          Group {data.group}, try {data.trajectory + 1} of {data.size}
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
      <Conversation items={data.messages_and_choices} />
      <h2>Tokens</h2>
      <TryTokens
        path={tryPath(id!, data.group, data.trajectory)}
        sequences={data.sequences}
        colour={colour}
        onColour={(next: Colour) => go(at, { colour: next })}
      />
      {data.status === "trained" && (
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
          {query.asked === "yes" && <AskedGot key={path} id={id!} path={path} sequences={data.sequences} />}
        </>
      )}
      <label>
        Difference to{" "}
        <select value={other ?? ""} onChange={(event) => go(at, { diff: event.currentTarget.value })}>
          <option value="">none</option>
          {Array.from({ length: data.size }, (_, i) => i !== at && <option value={i}>try {i + 1}</option>)}
        </select>
      </label>
      {other !== null && <TryDiff path={tryPath(id!, group!, other)} sequences={data.sequences} />}
      <UnderStep data={data} step={query.under ?? ""} onStep={(under) => go(at, { under })} />
      <More data={data} />
    </div>
  );
}

function Facts({ data: { status, message, reward, advantage, weight, from_step } }: { data: Try }) {
  const facts = { reward, advantage, weight, "from step": from_step };
  return (
    <>
      <p class="row num">
        <span class={`chip ${status === "trained" ? "good" : "warn"}`}>{status ?? "no verdict yet"}</span>
        {Object.entries(facts)
          .flatMap(([name, value]) => (value === null ? [] : `${name} ${number(value)}`))
          .join(" · ")}
      </p>
      {message !== null && <p>{message}</p>}
    </>
  );
}

/** What else was sent with the try; what is empty is left out. */
function More({ data: { metadata, metrics, logs, tools, exceptions } }: { data: Try }) {
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
