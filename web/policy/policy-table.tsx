// Policies as a table.
import type { TrainableModel } from "../../src/client/types.ts";
import { bytes, number } from "../format.ts";
import { Tags } from "../notes/note-line.tsx";
import type { Note, Notes } from "../notes/notes.ts";
import { type Column, SortHead, useSort } from "../parts/sort.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { jobWords } from "./rows.ts";

export interface PolicyTableProps {
  rows: readonly TrainableModel[];
  /** Where the origins of forks are looked up. */
  all: readonly TrainableModel[];
  notes: Notes;
}

const COLUMNS: readonly Column<TrainableModel>[] = [
  { title: "name", value: ({ name }) => name },
  { title: "project", value: ({ project }) => project },
  { title: "from", value: ({ base_model, forked_from }) => forked_from?.model_id ?? base_model },
  { title: "rank", value: ({ lora_rank }) => lora_rank },
  { title: "step", value: ({ latest_step }) => latest_step },
  { title: "reward, last 30", value: ({ recent_rewards }) => recent_rewards.at(-1) ?? null },
  { title: "last job", value: ({ last_job }) => last_job?.updated_at ?? null },
  { title: "disk", value: ({ bytes }) => bytes },
];

export function PolicyTable({ rows, all, notes }: PolicyTableProps) {
  const { sorted, sorting } = useSort(rows, COLUMNS);
  return (
    <TableScroll label="Table of policies">
      <table>
        <caption class="sr-only">Policies</caption>
        <SortHead {...sorting}>
          <th scope="col">
            <span class="sr-only">chat</span>
          </th>
        </SortHead>
        <tbody>
          {sorted.map((row) => (
            <Row key={row.id} row={row} all={all} note={notes.get(row.id)} />
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

interface RowProps {
  row: TrainableModel;
  all: readonly TrainableModel[];
  note: Note | undefined;
}

function Row({ row, all, note }: RowProps) {
  const { forked_from, recent_rewards, last_job, open_jobs } = row;
  const parent = forked_from === null ? undefined : all.find(({ id }) => id === forked_from.model_id);
  const job = last_job === null ? null : jobWords(last_job, Date.now());
  return (
    <tr>
      <th scope="row" title={note?.text}>
        <a href={`/policies/${encodeURIComponent(row.id)}`}>{row.name}</a> <Tags note={note} />
      </th>
      <td>{row.project}</td>
      <td>{forked_from === null ? row.base_model : `⑂ ${parent?.name ?? "a deleted policy"}@${forked_from.step}`}</td>
      <td class="num">{row.lora_rank}</td>
      <td class="num">{row.latest_step}</td>
      <td class="no-wrap">
        <Sparkline
          values={recent_rewards}
          label={`rewards from ${number(recent_rewards[0] ?? 0)} to ${number(recent_rewards.at(-1) ?? 0)}`}
        />{" "}
        <span class="num">{recent_rewards.length > 0 && number(recent_rewards.at(-1)!)}</span>
      </td>
      <td>
        {job !== null && <span class={`chip ${job.mood}`}>{job.text}</span>}
        {open_jobs > 1 && <span class="muted"> {open_jobs} open</span>}
      </td>
      <td class="num no-wrap">{bytes(row.bytes)}</td>
      <td>
        <a href={`/?m=${encodeURIComponent(row.name)}`} aria-label={`Chat with ${row.name}`}>
          chat
        </a>
      </td>
    </tr>
  );
}
