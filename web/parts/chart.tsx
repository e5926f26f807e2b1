// A line chart: uPlot on a canvas, and the same in words for those who cannot see it. Colours come from the style sheet and
// follow the theme.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../format.ts";
import { isSystemDark, theme } from "../theme.ts";
import { ChartTable } from "./chart-table.tsx";
import { onlyValue, tickDistances, tickLabels } from "./tick-labels.ts";

export interface Series {
  label: string;
  /** Null is a gap. */
  values: readonly (number | null)[];
  /** A custom property of the style sheet, such as --accent. */
  colour: string;
}

export interface ChartProps {
  title: string;
  xs: readonly number[];
  series: readonly Series[];
  /** Whether xs are seconds since 1970. */
  isTime?: boolean;
  height?: number;
  format?: (value: number) => string;
  /** Powers of ten at equal distances. Values that have no logarithm keep the scale linear. */
  isLog?: boolean;
  /** What the curve means. */
  note?: string | null;
  /** What an x is. With it, the numbers can be opened as a table. */
  xName?: string;
}

export function Chart(props: ChartProps) {
  const { title, xs, series, isTime = false, height = 130, format = number, note, xName } = props;
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const shape = series.map(({ label, colour }) => `${label} ${colour}`).join();
  const shownTheme = theme.value + isSystemDark.value;
  const isLog = props.isLog === true && hasLogarithms(series);
  const only = onlyValue(series.map(({ values }) => values));
  useEffect(() => {
    const node = place.current!;
    const axis = { stroke: resolved(node, "--muted"), grid: { stroke: resolved(node, "--line"), width: 1 } };
    const lines = series.map(({ label, colour }) => ({
      label,
      stroke: resolved(node, colour),
      width: 1.5,
      spanGaps: true,
    }));
    const made = new uPlot(
      {
        width: node.clientWidth,
        height,
        scales: {
          x: { time: isTime },
          y: { ...(isLog ? { distr: 3 } : {}), ...(only === null ? {} : flatScale(only)) },
        },
        axes: [
          { ...axis, size: 26, ...(isTime ? {} : { incrs: tickDistances(0) }) },
          {
            ...{
              ...axis,
              size: 60,
              space: 24,
              incrs: tickDistances(-12),
              values: (_chart, ticks) => tickLabels(ticks, format),
            },
            ...(only === null ? {} : { splits: () => [only] }),
          },
        ],
        series: [{}, ...lines],
        legend: { show: false },
        cursor: { y: false },
      },
      dataOf(xs, series),
      node,
    );
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: node.clientWidth, height }));
    watcher.observe(node);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape, isTime, isLog, only, height, shownTheme]);
  useEffect(() => chart.current?.setData(dataOf(xs, series)));
  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b>
        {series.map(({ label, values, colour }) => (
          <span key={label} class="legend num" style={{ "--tint": `var(${colour})` }}>
            {label} {format(lastOf(values))}
            <span class="sr-only">, highest {format(highestOf(values))}</span>
          </span>
        ))}
      </figcaption>
      {note != null && <p class="muted note">{note}</p>}
      {props.isLog === true && !isLog && <p class="muted note">Linear: some values are not above zero.</p>}
      <div ref={place} aria-hidden="true" />
      {xName !== undefined && <ChartTable title={title} xName={xName} xs={xs} series={series} format={format} />}
    </figure>
  );
}

/** A line that never moves is in the middle, and has one tick. */
function flatScale(value: number): { range: [number, number] } {
  const room = Math.abs(value) / 2 || 1;
  return { range: [value - room, value + room] };
}

function dataOf(xs: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [[...xs], ...series.map(({ values }) => [...values])];
}

function hasLogarithms(series: readonly Series[]): boolean {
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  return values.length > 0 && values.every((value) => value > 0);
}

function lastOf(values: readonly (number | null)[]): number {
  return values.findLast((value) => value !== null) ?? Number.NaN;
}

function highestOf(values: readonly (number | null)[]): number {
  return values.reduce<number>(
    (most, value) => (value === null ? most : Math.max(most, value)),
    Number.NEGATIVE_INFINITY,
  );
}

/** A canvas cannot read custom properties, nor light-dark(). */
function resolved(node: HTMLElement, property: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  node.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
