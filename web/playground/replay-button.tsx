// The button that proves a reply: scored again, bit for bit.
import { useSignal } from "@preact/signals";
import { number } from "../format.ts";
import { messageOf } from "../session.ts";
import { type ReplayResult, whyDifferent } from "./bits.ts";
import { replay } from "./replay.ts";
import type { Exchange } from "./reply.ts";

export function Replay({ exchange, index }: { exchange: Exchange; index: number }) {
  const state = useSignal<"idle" | "busy" | ReplayResult | Error>("idle");
  const run = async () => {
    state.value = "busy";
    state.value = await replay(exchange, index).catch((error: unknown) => new Error(messageOf(error)));
  };
  return (
    <div class="replay">
      <button
        type="button"
        class="small quiet"
        disabled={state.value === "busy"}
        title="Score it again and compare bit for bit"
        onClick={run}
      >
        Replay
      </button>
      <span role="status">
        <Outcome state={state.value} />
      </span>
    </div>
  );
}

function Outcome({ state }: { state: "idle" | "busy" | ReplayResult | Error }) {
  if (state === "idle") return null;
  if (state === "busy") return <span class="muted">scoring again…</span>;
  if (state instanceof Error) return <span class="problem">{state.message}</span>;
  return <Compared result={state} />;
}

export function Compared({ result: { same, total, firstDifference } }: { result: ReplayResult }) {
  if (firstDifference === null) {
    return (
      <span class="chip good">
        identical ✓ {same}/{total}
      </span>
    );
  }
  const { at, sampled, again } = firstDifference;
  return (
    <>
      <span class="chip bad">
        {same}/{total}; token {at + 1}: ln {number(sampled, 6)} then {again === null ? "nothing" : number(again, 6)}
      </span>{" "}
      {whyDifferent(firstDifference)}
    </>
  );
}
