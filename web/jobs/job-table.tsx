// Training jobs as a table: those of one policy, or of all.
import type { TrainingJob } from "../../src/client/types.ts";
import { duration } from "../format.ts";
import { Tags } from "../notes/note-line.tsx";
import type { Notes } from "../notes/notes.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { Moment } from "../parts/moment.tsx";
import type { Column } from "../parts/sort.tsx";
import { jobWords, timeLeft, verdictWords } from "../policy/rows.ts";
import { TableSection, useAttempt } from "../policy/table-section.tsx";
import { postJson } from "../server.ts";
import { jobPath } from "../training-jobs.ts";

export interface JobTableProps {
  rows: readonly TrainingJob[];
  notes: Notes;
  /** Names of policies by their ids; null: all rows are of the same. */
  policies: ReadonlyMap<string, string> | null;
  /** Ids of the jobs whose curves are drawn; null: they cannot be chosen. */
  chosen: readonly string[] | null;
  onChoose: (id: string, isChosen: boolean) => void;
  onChange: () => void;
}

export function JobTable({ rows, notes, policies, chosen, onChoose, onChange }: JobTableProps) {
  const { problem, attempt } = useAttempt(onChange);
  const nameOf = ({ model_id }: TrainingJob) => policies?.get(model_id) ?? model_id.slice(0, 8);
  const columns: Column<TrainingJob>[] = [
    { title: "job", value: ({ id }) => notes.get(id)?.tags.join() ?? id },
    ...(policies === null ? [] : [{ title: "policy", value: nameOf }]),
    { title: "steps", value: ({ from_step }) => from_step },
    { title: "state", value: ({ status, progress }) => `${status} ${progress ?? 0}` },
    { title: "rollouts", value: ({ totals }) => totals?.trajectories ?? null },
    { title: "took", value: tookMs },
    { title: "made", value: ({ created_at }) => created_at },
  ];
  return (
    <TableSection
      title="Jobs"
      problem={problem}
      columns={columns}
      rows={rows}
      sortName="jobs"
      row={(row) => (
        <Row
          key={row.id}
          row={row}
          notes={notes}
          policy={policies === null ? null : nameOf(row)}
          isChosen={chosen === null ? null : chosen.includes(row.id)}
          onChoose={(isChosen) => onChoose(row.id, isChosen)}
          onCancel={() => attempt(postJson(`${jobPath(row.id)}/cancel`, {}))}
        />
      )}
    />
  );
}

interface RowProps {
  row: TrainingJob;
  notes: Notes;
  policy: string | null;
  isChosen: boolean | null;
  onChoose: (isChosen: boolean) => void;
  onCancel: () => void;
}

function Row({ row, notes, policy, isChosen, onChoose, onCancel }: RowProps) {
  const now = Date.now();
  const { text, mood } = jobWords(row, now);
  const isOpen = row.status === "PENDING" || row.status === "RUNNING";
  const short = row.id.slice(0, 8);
  const left = timeLeft(row, row.gradient_steps?.done ?? 0, now);
  const took = tookMs(row);
  const note = notes.get(row.id);
  return (
    <tr>
      <th scope="row" title={note?.text}>
        {isChosen !== null && (
          <input
            type="checkbox"
            aria-label={`Draw the curves of job ${short}`}
            checked={isChosen}
            onChange={(event) => onChoose(event.currentTarget.checked)}
          />
        )}
        <a class="mono" href={`/jobs/${encodeURIComponent(row.id)}`}>
          {short}
        </a>{" "}
        <Tags note={note} />
      </th>
      {policy !== null && (
        <td>
          <a href={`/policies/${encodeURIComponent(row.model_id)}`}>{policy}</a>
        </td>
      )}
      <td class="num no-wrap">
        {row.from_step ?? "?"} → {row.step ?? (isOpen ? "…" : "–")}
      </td>
      <td>
        <span class={`chip ${mood}`}>{text}</span>
        {row.status === "RUNNING" && <progress value={row.progress ?? 0} max={1} aria-label="Progress" />}
        {left !== null && <span class="muted"> about {duration(left)} left</span>}
      </td>
      <td class="muted">{verdictWords(row.totals, row.status)}</td>
      <td class="num no-wrap muted">{took === null ? "" : duration(took)}</td>
      <td class="num no-wrap muted">
        <Moment at={row.created_at} />
      </td>
      <td>
        {isOpen && (
          <ConfirmButton
            label="cancel"
            name={`Cancel job ${short}`}
            question="It makes no step."
            onConfirm={onCancel}
          />
        )}
      </td>
    </tr>
  );
}

function tookMs({ training_start: start, training_end: end }: TrainingJob): number | null {
  return start === null || end === null ? null : Date.parse(end) - Date.parse(start);
}
