// One policy: how it does, its curves, its steps and its jobs.
import { useLocation, useRoute } from "preact-iso/router";
import { bytes } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { Curves } from "../policy/curves.tsx";
import { Jobs } from "../policy/jobs.tsx";
import type { JobRow, PolicyRow, StepRow } from "../policy/rows.ts";
import { Steps } from "../policy/steps.tsx";
import { callJson, getJson } from "../server.ts";
import { useNews } from "../use-news.ts";

export function Policy() {
  const { id } = useRoute().params as { id: string };
  const path = `/preview/models/${encodeURIComponent(id)}`;
  const { route } = useLocation();
  const policy = useQuery(path, (signal) => getJson<PolicyRow>(path, { signal }));
  const steps = useQuery(`${path} steps`, (signal) =>
    getJson<{ data: StepRow[] }>(`${path}/checkpoints`, { query: { order: "desc", limit: 100 }, signal }),
  );
  const jobs = useQuery(`${path} jobs`, (signal) =>
    getJson<{ data: JobRow[] }>("/preview/training-jobs", { query: { model_id: id, limit: 50 }, signal }),
  );
  const reload = () => {
    policy.reload();
    steps.reload();
    jobs.reload();
  };
  useNews(reload);
  useTitle(policy.data?.name ?? "Policy");
  const remove = async () => {
    await callJson("DELETE", path);
    route("/policies");
  };
  if (policy.data === null)
    return policy.error === null ? <p class="muted">…</p> : <p class="problem">{policy.error}</p>;
  const { name, project, base_model, lora_rank, lora_alpha, inference_name, latest_step } = policy.data;
  return (
    <div class="serving">
      <div class="row">
        <h1>{name}</h1>
        <span class="muted">
          {project} · from {base_model} · rank {lora_rank}, alpha {lora_alpha} · {bytes(policy.data.bytes)}
        </span>
        <CopyButton text={inference_name} what="the name for requests" label="copy the full name" />
        <span class="spring" />
        <a href={`/?m=${encodeURIComponent(name)}`}>Chat</a>
        <a href={`/?m=${encodeURIComponent(`${name}@0`)}&m=${encodeURIComponent(name)}&panel=many`}>
          Compare 0 and {latest_step}
        </a>
        <ConfirmButton
          label="delete"
          name={`Delete ${name}`}
          question="All its steps, jobs and curves go."
          onConfirm={() => void remove()}
        />
      </div>
      <Curves path={path} turn={latest_step} />
      <div class="two">
        <Steps policy={policy.data} rows={steps.data?.data ?? []} onChange={reload} />
        <Jobs rows={jobs.data?.data ?? []} onChange={reload} />
      </div>
    </div>
  );
}
