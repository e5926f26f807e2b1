// Loss lab: the trainer's own arithmetic over the record of a job. Settings and rewards can be changed, and what they do to
// advantages, clipping and gradients shows at once.
import { useMemo } from "preact/hooks";
import type { Sequence } from "../jobs/records.ts";
import { COLOUR_NAMES, COLOURS } from "../jobs/token-colours.ts";
import { useShortcuts } from "../keys.ts";
import { KnobPanel } from "../lab/knob-panel.tsx";
import { type Config, changed } from "../lab/knobs.ts";
import { LabGroup } from "../lab/lab-group.tsx";
import { LabRollout } from "../lab/lab-rollout.tsx";
import { type LabState, useLab } from "../lab/lab-state.ts";
import { LabTokens } from "../lab/lab-tokens.tsx";
import { placeOf, type Signals, signalsOf } from "../lab/signals.ts";
import { sequenceLoss, stepTokensOf } from "../lab/token-loss.ts";
import {
  type JobData,
  type LabRolloutData,
  useJobData,
  useLabRollout,
  useLeftOut,
  useReference,
} from "../lab/use-lab-data.ts";
import { Choice } from "../parts/choice.tsx";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useTitle } from "../parts/use-title.ts";
import { useRoute } from "../router.ts";

export function Lab() {
  return (
    <NeedsScope scope="training" title="Loss lab">
      <LabOfJob />
    </NeedsScope>
  );
}

function LabOfJob() {
  const id = useRoute().params.id!;
  useTitle("Loss lab");
  const { data, error } = useJobData(id);
  const why = data === null ? error : (data.groups.missing ?? whyNot(data));
  return (
    <div class="job lab">
      <div class="row">
        <a href={`/jobs/${id}`}>Job {id.slice(0, 8)}</a>
        <h1>Loss lab</h1>
      </div>
      {data === null && error === null && <p class="muted">…</p>}
      {why !== null && <p role="alert">{why}</p>}
      {data !== null && why === null && <Bench key={id} data={data} />}
    </div>
  );
}

function whyNot({ job, groups: { rows } }: JobData): string | null {
  if (job.kind === "sft") return "A supervised job has no advantages: every token is made likelier alike.";
  return rows.some(({ trajectories }) => trajectories.length > 0) ? null : "The job has no rollouts.";
}

function Bench({ data }: { data: JobData }) {
  const { job, groups, policy } = data;
  const [state, set] = useLab();
  const config = useMemo(() => changed(job.config, state.changes), [job, state.changes]);
  const bare = useMemo(() => signalsOf(groups.rows, config, state.rewards, new Map()), [groups, config, state.rewards]);
  const leftOut = useLeftOut(job.id, bare.uncounted > 0);
  const signals = useMemo(() => {
    const counts = new Map([...(leftOut.data ?? [])].map(([place, one]) => [place, one.num_trainable_tokens]));
    return counts.size === 0 ? bare : signalsOf(groups.rows, config, state.rewards, counts);
  }, [bare, leftOut.data]);
  const group = groups.rows.find((row) => row.group === state.group) ?? groups.rows[0]!;
  const at = Math.min(state.trajectory, Math.max(0, group.trajectories.length - 1));
  const go = (to: number) => {
    if (to >= 0 && to < group.trajectories.length) set({ group: group.group, trajectory: to });
  };
  useShortcuts([
    { keys: "[", what: "previous rollout of the group", run: () => go(at - 1) },
    { keys: "]", what: "next rollout of the group", run: () => go(at + 1) },
  ]);
  const inView =
    signals.uncounted > 0
      ? (leftOut.error ?? "Asking the server for the tokens of rollouts that were left out…")
      : null;
  return (
    <div class="bench">
      <KnobPanel job={job.config} changes={state.changes} onChange={(changes) => set({ changes })} />
      <div class="job">
        <LabRollout id={job.id} policy={policy.name} config={config} rewards={state.rewards} signals={signals} />
        {inView !== null && <p role="status">{inView}</p>}
        <label>
          group{" "}
          <input
            type="number"
            min={0}
            max={groups.rows.at(-1)!.group}
            value={group.group}
            onInput={({ currentTarget: field }) =>
              Number.isInteger(field.valueAsNumber) && set({ group: field.valueAsNumber, trajectory: 0 })
            }
          />{" "}
          of {groups.rows.length}
        </label>
        <LabGroup
          group={group}
          trajectory={at}
          signals={signals}
          rewards={state.rewards}
          onRewards={(rewards) => set({ rewards })}
          onRollout={go}
        />
        {group.trajectories.length > 0 && (
          <RolloutPart
            key={placeOf(group.group, at)}
            data={data}
            config={config}
            signals={signals}
            state={{ ...state, group: group.group, trajectory: at }}
            leftOut={leftOut.data?.get(placeOf(group.group, at))?.sequences}
            onColour={(colour) => set({ colour })}
          />
        )}
      </div>
    </div>
  );
}

interface RolloutPartProps {
  data: JobData;
  config: Config;
  signals: Signals;
  state: LabState;
  /** Tokens of a rollout that was left out; undefined: the record has them, or nobody asked. */
  leftOut: Pick<Sequence, "tokens" | "mask" | "logprobs">[] | undefined;
  onColour: (colour: LabState["colour"]) => void;
}

function RolloutPart({ data, config, signals, state, leftOut, onColour }: RolloutPartProps) {
  const { group, trajectory } = state;
  const { data: found, error } = useLabRollout(data.job.id, group, trajectory);
  const sequences = useMemo(() => sequencesOf(found, leftOut), [found, leftOut]);
  const isKept = found?.numbers.some(({ values }) => values.reference_kl?.some((value) => value !== null)) === true;
  const isPenalised = Number(config.kl_penalty_coef) > 0 && found !== null && !isKept;
  const reference = useReference(data, config, sequences, isPenalised);
  if (found === null) return error === null ? <p class="muted">…</p> : <p role="alert">{error}</p>;
  const signal = signals.of.get(placeOf(group, trajectory))!;
  const notes = notesOf(found, data.job.config, isPenalised, reference.data === null ? reference.error : "");
  const name = `group ${group}, rollout ${trajectory + 1}`;
  return (
    <section aria-label={`Tokens of ${name}`}>
      <Choice
        legend="Colour"
        name="colour"
        names={COLOUR_NAMES}
        values={COLOURS}
        value={state.colour}
        onChange={onColour}
      />
      {notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
      {sequences.length === 0 && <p>It was left out before it was tokenised, so there are no tokens.</p>}
      {sequences.map((sequence, index) => {
        const recorded = found.numbers.find((one) => one.sequence === index);
        const step = stepTokensOf(sequence, config, signals);
        const result = sequenceLoss({
          ...{ sequence, index, signal, recorded, job: data.job.config, config },
          ...{ reference: reference.data?.[index] ?? null, stepTokens: step.tokens },
        });
        return (
          <div key={index}>
            <LabTokens
              sequence={sequence}
              result={result}
              recorded={recorded}
              colour={state.colour}
              name={sequences.length > 1 ? `${name}, sequence ${index + 1}` : name}
            />
            {!result.isCentred && (
              <p class="muted">
                The KL penalty is centred over this sequence alone: what else its gradient step compared is not known.
              </p>
            )}
            {!step.isExact && (
              <p class="muted">
                Which sequences share its gradient step is not known, so gradients may be off by a factor.
              </p>
            )}
          </div>
        );
      })}
    </section>
  );
}

function sequencesOf(found: LabRolloutData | null, leftOut: RolloutPartProps["leftOut"]): readonly Sequence[] {
  const kept = found?.record.sequences ?? [];
  if (kept.length > 0 || leftOut === undefined) return kept;
  const unknown = { token_strings: [], advantages: [], gradient_step: null, gradient_step_tokens: null };
  return leftOut.map((sequence) => ({ ...sequence, ...unknown }));
}

/** What the numbers rest on, where it is less than what the trainer saw. */
function notesOf(found: LabRolloutData, job: Config, isPenalised: boolean, referenceError: string | null): string[] {
  const notes: string[] = [];
  if (found.missing !== null) notes.push(`${found.missing} So every ratio is 1, as in a job's first gradient step.`);
  if (found.missing === null && job.precalculate_logprobs === true && job.importance_sampling_level !== "token") {
    notes.push(
      "The job computed old log-probabilities itself and kept ratios of sequences only, so ratios of tokens are not exact.",
    );
  }
  if (isPenalised && referenceError !== "") notes.push(referenceError ?? "Scoring the tokens under the reference…");
  return notes;
}
