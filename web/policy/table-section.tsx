// The frame that the tables of policies and jobs share: a heading, what went wrong with a button, columns that sort, and a last
// one for the buttons.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type Column, SortHead, useSort } from "../parts/sort.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { messageOf } from "../session.ts";

export interface TableSectionProps<Row> {
  title: string;
  problem: string | null;
  /** Without the last, which has the buttons. */
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  row: (row: Row) => ComponentChildren;
  /** Of the order in the address. */
  sortName: string;
  children?: ComponentChildren;
}

export function TableSection<Row>(props: TableSectionProps<Row>) {
  const { title, problem, columns, rows, row, sortName, children } = props;
  const { sorted, sorting } = useSort(rows, columns, sortName);
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <p class="problem" role="alert">
        {problem}
      </p>
      {rows.length === 0 ? (
        <p class="muted">none</p>
      ) : (
        <TableScroll label={`Table of ${title.toLowerCase()}`}>
          <table>
            <SortHead {...sorting}>
              <th scope="col">
                <span class="sr-only">actions</span>
              </th>
            </SortHead>
            <tbody>{sorted.map(row)}</tbody>
          </table>
        </TableScroll>
      )}
      {children}
    </section>
  );
}

/** Runs what a button asks for: then calls `onDone`, or says what went wrong. */
export function useAttempt(onDone: () => void): { problem: string | null; attempt: (work: Promise<unknown>) => void } {
  const problem = useSignal<string | null>(null);
  const attempt = (work: Promise<unknown>) => {
    problem.value = null;
    work.then(onDone, (error: unknown) => {
      problem.value = messageOf(error);
    });
  };
  return { problem: problem.value, attempt };
}
