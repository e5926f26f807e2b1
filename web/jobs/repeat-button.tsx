// The button that proves a job: trained again from the same step, it makes the same step.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import { messageOf } from "../session.ts";
import { type Repetition, repeatJob } from "./repeat.ts";

export function RepeatButton({ job }: { job: TrainingJob }) {
  const state = useSignal<Repetition | string>("");
  const gone = useRef(new AbortController());
  useEffect(() => () => gone.current.abort(), []);
  const run = async () => {
    state.value = "training it again on a fork…";
    state.value = await repeatJob(job, gone.current.signal).catch(messageOf);
  };
  const told = state.value;
  return (
    <p class="row">
      <button type="button" class="small" disabled={told === "training it again on a fork…"} onClick={run}>
        Repeat and compare
      </button>
      <span role="status">
        {typeof told === "string" ? (
          told
        ) : told.first !== null && told.first === told.again ? (
          <span class="chip good">identical ✓ SHA-256 {told.first.slice(0, 16)}</span>
        ) : (
          <span class="chip bad">
            SHA-256 {told.first?.slice(0, 16) ?? "unknown"} then {told.again?.slice(0, 16) ?? "unknown"}
          </span>
        )}
      </span>
    </p>
  );
}
