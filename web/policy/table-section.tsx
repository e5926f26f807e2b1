// The frame that the tables of a policy share: a heading, what went wrong with a button, and a last column for the buttons.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { TableScroll } from "../parts/table-scroll.tsx";
import { messageOf } from "../session.ts";

export interface TableSectionProps {
  title: string;
  problem: string | null;
  /** Without the last, which has the buttons. */
  columns: readonly string[];
  rows: readonly ComponentChildren[];
  children?: ComponentChildren;
}

export function TableSection({ title, problem, columns, rows, children }: TableSectionProps) {
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
            <thead>
              <tr>
                {columns.map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
                <th scope="col">
                  <span class="sr-only">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>{rows}</tbody>
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
