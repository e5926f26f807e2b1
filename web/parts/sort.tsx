// Tables that can be sorted by every column. The order is in the address: ?sort=reward, ?sort=-reward for the highest first.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { noteInQuery } from "../address.ts";

export interface Column<Row> {
  /** What the head shows; also its name in the address. */
  title: string;
  /** What rows are sorted by. Rows without a value come last. */
  value: (row: Row) => number | string | null;
}

export interface Order {
  title: string;
  isDown: boolean;
}

export interface Sorting<Row> {
  columns: readonly Column<Row>[];
  order: Order | null;
  /** Once up, once down, once as it came. */
  onSort: (title: string) => void;
}

/** `name`: in the address. `rows` as they come are the third order. */
export function useSort<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  name = "sort",
): { sorted: readonly Row[]; sorting: Sorting<Row> } {
  const [order, setOrder] = useState(() => orderFrom(new URLSearchParams(location.search).get(name)));
  const column = columns.find(({ title }) => title === order?.title);
  const sorted = useMemo(
    () => (order === null || column === undefined ? rows : sortedBy(rows, column.value, order.isDown)),
    [rows, order, column?.title],
  );
  const onSort = (title: string) => {
    const next = nextOrder(order, title);
    noteInQuery(name, next === null ? "" : `${next.isDown ? "-" : ""}${next.title}`);
    setOrder(next);
  };
  return { sorted, sorting: { columns, order, onSort } };
}

export function orderFrom(text: string | null): Order | null {
  if (text === null || text === "") return null;
  return text.startsWith("-") ? { title: text.slice(1), isDown: true } : { title: text, isDown: false };
}

export function nextOrder(order: Order | null, title: string): Order | null {
  if (order?.title !== title) return { title, isDown: false };
  return order.isDown ? null : { title, isDown: true };
}

/** Numbers by size, texts by the alphabet with numbers in them by size; equal ones stay in order. */
export function sortedBy<Row>(
  rows: readonly Row[],
  value: (row: Row) => number | string | null,
  isDown: boolean,
): readonly Row[] {
  // values once per row: a comparison asks for them again and again
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  const compare = (one: number | string, other: number | string) =>
    typeof one === "number" && typeof other === "number" ? one - other : TEXTS.compare(String(one), String(other));
  keyed.sort((one, other) => {
    if (isNothing(one.key) || isNothing(other.key)) return Number(isNothing(one.key)) - Number(isNothing(other.key));
    return isDown ? compare(other.key, one.key) : compare(one.key, other.key);
  });
  return keyed.map(({ row }) => row);
}

const TEXTS = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function isNothing(key: number | string | null): key is null {
  return key === null || Number.isNaN(key);
}

/** The row of heads of a sorted table. `children` is what comes after them. */
export function SortHead<Row>({ columns, order, onSort, children }: Sorting<Row> & { children?: ComponentChildren }) {
  return (
    <thead>
      <tr>
        {columns.map(({ title }) => (
          <th key={title} scope="col" aria-sort={directionOf(order, title)}>
            <SortButton title={title} order={order} onSort={onSort} />
          </th>
        ))}
        {children}
      </tr>
    </thead>
  );
}

export function SortButton({ title, order, onSort }: Pick<Sorting<never>, "order" | "onSort"> & { title: string }) {
  const mark = order?.title !== title ? "" : order.isDown ? " ↓" : " ↑";
  return (
    <button type="button" class="sort" title={`Sort by ${title}`} onClick={() => onSort(title)}>
      {title}
      <span aria-hidden="true">{mark}</span>
    </button>
  );
}

export function directionOf(order: Order | null, title: string): "ascending" | "descending" | undefined {
  if (order?.title !== title) return undefined;
  return order.isDown ? "descending" : "ascending";
}
