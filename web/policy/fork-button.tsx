// Makes a new policy that begins with a step of this one, and goes there. It asks for the name, in place.

import { useSignal } from "@preact/signals";
import type { TrainableModel } from "../../src/client/types.ts";
import { useQuestion } from "../parts/use-question.ts";
import { useLocation } from "../router.ts";
import { postJson } from "../server.ts";
import { messageOf } from "../session.ts";

export function ForkButton({ policy, step }: { policy: TrainableModel; step: number }) {
  const { route } = useLocation();
  const { isAsking, place, onKeyDown } = useQuestion();
  const problem = useSignal<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      const made = await postJson<TrainableModel>("/preview/models", {
        project: policy.project,
        name: place.current!.value.trim(),
        base_model: policy.base_model,
        from: { model_id: policy.id, step },
      });
      route(`/policies/${encodeURIComponent(made.id)}`);
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  if (!isAsking.value) {
    return (
      <button
        ref={place}
        type="button"
        class="small"
        aria-label={`Fork step ${step}`}
        onClick={() => {
          isAsking.value = true;
        }}
      >
        fork
      </button>
    );
  }
  return (
    <form class="row" onSubmit={submit} onKeyDown={onKeyDown}>
      <input
        ref={place}
        onFocus={(event) => event.currentTarget.select()}
        required
        aria-label={`Name of the fork of step ${step}`}
        defaultValue={`${policy.name}-fork-${step}`}
        autocomplete="off"
      />
      <button type="submit" class="small">
        Create
      </button>
      <button
        type="button"
        class="small"
        onClick={() => {
          isAsking.value = false;
          problem.value = null;
        }}
      >
        No
      </button>
      <span class="problem" role="alert">
        {problem.value}
      </span>
    </form>
  );
}
