// What a policy is, and what can be done with all of it.

import { useSignal } from "@preact/signals";
import type { TrainableModel } from "../../src/client/types.ts";
import { bytes } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { useLocation } from "../router.ts";
import { callJson } from "../server.ts";
import { me } from "../server-facts.ts";
import { messageOf } from "../session.ts";
import { ForkButton } from "./fork-button.tsx";

export function PolicyHeader({ policy }: { policy: TrainableModel }) {
  const { route } = useLocation();
  const problem = useSignal<string | null>(null);
  const { id, name, project, base_model, lora_rank, lora_alpha, inference_name, latest_step, forked_from } = policy;
  const remove = () => {
    problem.value = null;
    callJson("DELETE", `/preview/models/${encodeURIComponent(id)}`).then(
      () => route("/policies"),
      (error: unknown) => {
        problem.value = messageOf(error);
      },
    );
  };
  // Only an admin sees policies of others, and is told whose they are.
  const isForeign = me.value !== null && (policy.workspace ?? me.value.workspace.name) !== me.value.workspace.name;
  const address = (...models: string[]) => `/?${new URLSearchParams(models.map((model) => ["m", model]))}`;
  return (
    <header class="policy-header">
      <div class="row">
        <h1>{name}</h1>
        <span class="spring" />
        <a href={address(name)}>Chat</a>
        {Boolean(latest_step) && <a href={`${address(`${name}@0`, name)}&panel=many`}>Compare 0 and {latest_step}</a>}
        {latest_step !== null && <ForkButton policy={policy} step={latest_step} />}
        <ConfirmButton
          label="delete"
          name={`Delete ${name}`}
          question="All its steps, jobs and curves go."
          onConfirm={remove}
        />
      </div>
      <p class="muted">
        {project} · from {base_model} · rank {lora_rank}, alpha {lora_alpha} · {bytes(policy.bytes)}
        {isForeign && ` · workspace ${policy.workspace}`}
        {forked_from !== null && (
          <>
            {" · "}
            <a href={`/policies/${encodeURIComponent(forked_from.model_id)}`}>forked at step {forked_from.step}</a>
          </>
        )}
      </p>
      <p class="row">
        <code class="full-name">{inference_name}</code>
        <CopyButton text={inference_name} what="the name for requests" />
      </p>
      <p class="problem" role="alert">
        {problem.value}
      </p>
    </header>
  );
}
