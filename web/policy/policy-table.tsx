// Policies as a table.
import type { TrainableModel } from "../../src/client/types.ts";
import { bytes, number } from "../format.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { jobWords } from "./rows.ts";

/** `all`: where the origins of forks are looked up. */
export function PolicyTable({ rows, all }: { rows: readonly TrainableModel[]; all: readonly TrainableModel[] }) {
  return (
    <TableScroll label="Table of policies">
      <table>
        <caption class="sr-only">Policies</caption>
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col">project</th>
            <th scope="col">from</th>
            <th scope="col">rank</th>
            <th scope="col">step</th>
            <th scope="col">reward, last 30</th>
            <th scope="col">last job</th>
            <th scope="col">disk</th>
            <th scope="col">
              <span class="sr-only">chat</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} all={all} />
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

function Row({ row, all }: { row: TrainableModel; all: readonly TrainableModel[] }) {
  const { forked_from, recent_rewards, last_job, open_jobs } = row;
  const parent = forked_from === null ? undefined : all.find(({ id }) => id === forked_from.model_id);
  const job = last_job === null ? null : jobWords(last_job, Date.now());
  return (
    <tr>
      <th scope="row">
        <a href={`/policies/${encodeURIComponent(row.id)}`}>{row.name}</a>
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
