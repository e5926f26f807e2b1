// The numbers of a chart, for those who cannot see it or want to read them. Made when it is opened.
import { useSignal } from "@preact/signals";
import { TableScroll } from "./table-scroll.tsx";

const MOST_ROWS = 500;

interface ChartTableProps {
  title: string;
  /** What an x is. */
  xName: string;
  xs: readonly number[];
  series: readonly { label: string; values: readonly (number | null | undefined)[] }[];
  format: (value: number) => string;
}

export function ChartTable({ title, xName, xs, series, format }: ChartTableProps) {
  const isOpen = useSignal(false);
  const from = Math.max(0, xs.length - MOST_ROWS);
  return (
    <details
      class="chart-table"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary class="muted">
        numbers<span class="sr-only"> of {title}</span>
      </summary>
      {isOpen.value && (
        <TableScroll label={`Numbers of ${title}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{xName}</th>
                {series.map(({ label }) => (
                  <th key={label} scope="col">
                    {label === "" ? title : label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {xs.slice(from).map((x, i) => (
                <tr key={x}>
                  <th scope="row">{x}</th>
                  {series.map(({ label, values }) => (
                    <td key={label} class="num">
                      {format(values[from + i] ?? Number.NaN)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </TableScroll>
      )}
    </details>
  );
}
