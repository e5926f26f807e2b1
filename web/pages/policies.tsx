// The caller's policies: where each stands and how its reward moved.
import { useSignal } from "@preact/signals";
import { bytes, number } from "../format.ts";
import { models } from "../models.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { jobWords, matches, type PolicyRow } from "../policy/rows.ts";
import { getJson, postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { useNews } from "../use-news.ts";

export function Policies() {
  useTitle("Policies");
  const filter = useSignal(new URLSearchParams(location.search).get("filter") ?? "");
  const { data, error, reload } = useQuery("policies", listPolicies);
  useNews(reload);
  const shown = (data ?? []).filter((row) => matches(row, filter.value));
  return (
    <div class="serving">
      <div class="row">
        <h1>Policies{data === null ? "" : ` (${data.length})`}</h1>
        <span class="spring" />
        <label class="number-field">
          <span>filter</span>
          <input
            type="search"
            value={filter.value}
            onInput={(event) => {
              filter.value = event.currentTarget.value;
              const query = filter.value === "" ? "" : `?filter=${encodeURIComponent(filter.value)}`;
              history.replaceState(history.state, "", `/policies${query}`);
            }}
          />
        </label>
      </div>
      <Register onMade={reload} />
      {error !== null && <p class="problem">{error}</p>}
      {data?.length === 0 && <p>None yet. Teach the model something in the playground, or register one here.</p>}
      {shown.length > 0 && (
        <div class="table-scroll">
          <table>
            <caption class="sr-only">Policies</caption>
            <thead>
              <tr>
                <th>name</th>
                <th>project</th>
                <th>from</th>
                <th>step</th>
                <th>reward, last 30</th>
                <th>last job</th>
                <th>disk</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <Row key={row.id} row={row} all={data!} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

async function listPolicies(signal: AbortSignal): Promise<PolicyRow[]> {
  const rows: PolicyRow[] = [];
  for (let after: string | null = null; ; after = rows.at(-1)!.id) {
    const page: { data: PolicyRow[]; has_more: boolean } = await getJson("/preview/models", {
      query: { limit: 100, after },
      signal,
    });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

function Row({ row, all }: { row: PolicyRow; all: readonly PolicyRow[] }) {
  const { forked_from, recent_rewards, last_job } = row;
  const parent = forked_from === null ? undefined : all.find(({ id }) => id === forked_from.model_id);
  const job = last_job === null ? null : jobWords(last_job, Date.now());
  return (
    <tr>
      <td>
        <a href={`/policies/${encodeURIComponent(row.id)}`}>{row.name}</a>
      </td>
      <td>{row.project}</td>
      <td>{forked_from === null ? row.base_model : `⑂ ${parent?.name ?? "a deleted policy"}@${forked_from.step}`}</td>
      <td class="num">{row.latest_step}</td>
      <td>
        <Sparkline
          values={recent_rewards}
          label={`rewards from ${number(recent_rewards[0] ?? 0)} to ${number(recent_rewards.at(-1) ?? 0)}`}
        />{" "}
        <span class="num">{recent_rewards.length > 0 && number(recent_rewards.at(-1)!)}</span>
      </td>
      <td>{job !== null && <span class={`chip ${job.mood}`}>{job.text}</span>}</td>
      <td class="num">{bytes(row.bytes)}</td>
    </tr>
  );
}

function Register({ onMade }: { onMade: () => void }) {
  const problem = useSignal<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const name = String(new FormData(form).get("name")).trim();
    try {
      await postJson("/preview/models", { project: "playground", name, base_model: models.value[0]?.id });
      form.reset();
      problem.value = null;
      onMade();
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <form class="row" onSubmit={submit}>
      <label class="number-field">
        <span>new policy</span>
        <input name="name" required placeholder="my-agent" autocomplete="off" />
      </label>
      <button type="submit">Register</button>
      <span class="problem" role="alert">
        {problem.value}
      </span>
    </form>
  );
}
