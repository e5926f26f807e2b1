// A line chart: uPlot on a canvas, and the same in words for those who cannot see it. Colours come from the style sheet and
// follow the theme. All charts of a page share one cursor and what is zoomed into; live updates leave both as they are.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../format.ts";
import { isSystemDark, theme } from "../theme.ts";
import { ChartTable } from "./chart-table.tsx";
import { onlyValue, tickDistances, tickLabels } from "./tick-labels.ts";

/** Null is a gap; undefined: nothing is known at this x, because another line brought it. */
export type Values = readonly (number | null | undefined)[];

export interface Series {
  label: string;
  values: Values;
  /** What `values` smooths, drawn pale behind them. */
  raw?: Values | undefined;
  /** A custom property of the style sheet, such as --accent. */
  colour: string;
  isDashed?: boolean;
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

const ALL_CHARTS = uPlot.sync("page");
const PALE = "40"; // of 255, in hex

export function Chart(props: ChartProps) {
  const { title, xs, series, isTime = false, height = 130, format = number, note, xName } = props;
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  /** The index under the cursor; null: it is elsewhere. */
  const at = useSignal<number | null>(null);
  const zoom = useSignal<{ min: number; max: number } | null>(null);
  const shape = series.map(({ label, colour, raw, isDashed }) => [label, colour, raw && "raw", isDashed]).join();
  const shownTheme = theme.value + isSystemDark.value;
  const isLog = props.isLog === true && hasLogarithms(series);
  const only = onlyValue(series.map(({ values }) => values));
  useEffect(() => {
    const node = place.current!;
    const axis = { stroke: resolved(node, "--muted"), grid: { stroke: resolved(node, "--line"), width: 1 } };
    const made = new uPlot(
      {
        width: node.clientWidth,
        height,
        padding: [8, 16, 0, 0],
        scales: {
          x: { time: isTime },
          y: { ...(isLog ? { distr: 3 } : {}), ...(only === null ? {} : flatScale(only)) },
        },
        axes: [
          { ...axis, size: 26, ...(isTime ? {} : { incrs: tickDistances(0) }) },
          {
            ...axis,
            ...{ size: widthOfLabels, space: 24, incrs: tickDistances(-12) },
            values: (_chart, ticks) => tickLabels(ticks, format),
            ...(only === null ? {} : { splits: () => [only] }),
          },
        ],
        series: [{}, ...series.flatMap((one) => linesOf(one, resolved(node, one.colour)))],
        legend: { show: false },
        cursor: { y: false, sync: { key: ALL_CHARTS.key } },
        hooks: {
          setCursor: [
            (own) => {
              at.value = own.cursor.idx ?? null;
            },
          ],
          setScale: [
            (own, key) => {
              if (key === "x") zoom.value = zoomOf(own);
            },
          ],
        },
      },
      dataOf(xs, series),
      node,
    );
    if (zoom.value !== null) made.setScale("x", zoom.value);
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: node.clientWidth, height }));
    watcher.observe(node);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape, isTime, isLog, only, height, shownTheme]);
  useEffect(() => {
    const kept = zoom.value;
    chart.current?.setData(dataOf(xs, series), kept === null);
    if (kept !== null) chart.current?.setScale("x", kept);
  }, [xs, series]);
  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b>
        <Legend {...{ xs, series, format, at }} xName={isTime ? null : (xName ?? null)} />
        {zoom.value !== null && (
          <button type="button" class="small quiet" onClick={showAll}>
            Show all<span class="sr-only"> of {title}</span>
          </button>
        )}
      </figcaption>
      {note != null && <p class="muted note">{note}</p>}
      {props.isLog === true && !isLog && <p class="muted note">Linear: some values are not above zero.</p>}
      <div ref={place} aria-hidden="true" />
      {xName !== undefined && <ChartTable title={title} xName={xName} xs={xs} series={series} format={format} />}
    </figure>
  );
}

interface LegendProps extends Required<Pick<ChartProps, "xs" | "series" | "format">> {
  at: Signal<number | null>;
  xName: string | null;
}

/** The newest value of every line, or those under the cursor. */
function Legend({ xs, series, format, at, xName }: LegendProps) {
  const place = at.value !== null && at.value < xs.length ? at.value : null;
  return (
    <>
      {series.map(({ label, values, raw, colour }) => (
        <span key={label} class="legend num" style={{ "--tint": `var(${colour})` }}>
          {label} {format(place === null ? lastOf(values) : (values[place] ?? Number.NaN))}
          {raw !== undefined && place !== null && raw[place] != null && ` (${format(raw[place])})`}
          <span class="sr-only">, highest {format(highestOf(values))}</span>
        </span>
      ))}
      {xName !== null && (
        <span class="legend-place num muted">{place === null ? "newest" : `at ${xName} ${number(xs[place]!)}`}</span>
      )}
    </>
  );
}

/** One for the values, after one for what they smooth. */
function linesOf({ label, raw, isDashed }: Series, stroke: string): uPlot.Series[] {
  const line = { label, stroke, width: 1.5, spanGaps: false, ...(isDashed ? { dash: [6, 4] } : {}) };
  if (raw === undefined) return [line];
  return [{ ...line, stroke: withAlpha(stroke), width: 1, points: { show: false } }, line];
}

/** `colour`: as getComputedStyle gives it, rgb(…). */
function withAlpha(colour: string): string {
  const parts = colour.match(/\d+/g)!.slice(0, 3);
  return `#${parts.map((part) => Number(part).toString(16).padStart(2, "0")).join("")}${PALE}`;
}

/** As much as the longest label needs. */
function widthOfLabels(own: uPlot, labels: string[] | null, index: number, cycle: number): number {
  const axis = own.axes[index] as uPlot.Axis & { _size?: number };
  if (cycle > 1) return axis._size ?? 60; // what the first round found: another round could go on for ever
  const longest = (labels ?? []).reduce((found, label) => (label.length > found.length ? label : found), "");
  const font = (axis.font as unknown as [string] | undefined)?.[0];
  if (font !== undefined) own.ctx.font = font;
  return Math.ceil(18 + own.ctx.measureText(longest).width / devicePixelRatio);
}

/** What is shown of the x axis; null: all of it. */
function zoomOf({ data: [xs], scales }: uPlot): { min: number; max: number } | null {
  const { min, max } = scales.x!;
  if (min == null || max == null || xs.length < 2) return null;
  return min > xs[0]! || max < xs.at(-1)! ? { min, max } : null;
}

function showAll(): void {
  for (const one of ALL_CHARTS.plots) one.setData(one.data);
}

/** A line that never moves is in the middle, and has one tick. */
function flatScale(value: number): { range: [number, number] } {
  const room = Math.abs(value) / 2 || 1;
  return { range: [value - room, value + room] };
}

function dataOf(xs: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const columns = series.flatMap(({ values, raw }) => (raw === undefined ? [values] : [raw, values]));
  return [[...xs], ...columns.map((values) => [...values])];
}

function hasLogarithms(series: readonly Series[]): boolean {
  const values = series.flatMap((one) => one.values).filter((value) => value != null);
  return values.length > 0 && values.every((value) => value > 0);
}

function lastOf(values: Values): number {
  return values.findLast((value) => value != null) ?? Number.NaN;
}

function highestOf(values: Values): number {
  return values.reduce<number>(
    (most, value) => (value == null ? most : Math.max(most, value)),
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
