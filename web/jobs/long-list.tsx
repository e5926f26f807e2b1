// A list of which only the rows near the window exist, so that thousands of rows cost no more than two screens of them. All
// rows are equally high: the style sheet places each by its index.
import type { ComponentChild } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../keys.ts";

/** Rows come and go in steps of so many. */
const STEP = 4;

export interface LongListProps {
  count: number;
  /** A list item with the class "long-row" and the index as its --row. While the function is the same, so are its rows. */
  row: (index: number) => ComponentChild;
}

export function LongList({ count, row }: LongListProps) {
  const list = useRef<HTMLOListElement>(null);
  const [{ from, to }, setShown] = useState({ from: 0, to: 0 });
  /** The row with the focus stays, and those that Tab, j and k reach from it. */
  const focused = useRef<Element | null>(null);
  const look = () => {
    if (list.current === null) return;
    const { top, height } = list.current.getBoundingClientRect();
    const rowHeight = height / count || 1;
    const rowAt = (y: number) => Math.min(count, Math.max(0, Math.floor((y - top) / rowHeight / STEP) * STEP));
    const seen = { from: rowAt(0), to: rowAt(innerHeight) + STEP };
    setShown((before) => {
      // What is seen comes first, half a screen on both sides in a task of its own.
      const isReady = before.from <= seen.from && seen.to <= before.to;
      const next = isReady ? { from: rowAt(-innerHeight / 2), to: rowAt(innerHeight * 1.5) + STEP } : seen;
      return before.from === next.from && before.to === next.to ? before : next;
    });
  };
  useEffect(look, [from, to]);
  useEffect(() => {
    // Something above the list may open or close. It tells in the middle of a frame, which has enough to do.
    const watcher = new ResizeObserver(() => setTimeout(look));
    watcher.observe(document.body);
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      watcher.disconnect();
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [count]);
  const step = (by: number) => {
    const rows = [...list.current!.children];
    rows[rows.indexOf(focused.current!) + by]?.querySelector("a")?.focus();
  };
  useShortcuts([
    { keys: "j", what: "next line", run: () => step(1) },
    { keys: "k", what: "previous line", run: () => step(-1) },
  ]);
  const made = useMemo(() => new Map<number, ComponentChild>(), [row]);
  const rowOf = (index: number) => {
    if (!made.has(index)) made.set(index, row(index));
    return made.get(index);
  };
  const kept = focused.current === null ? Number.NaN : Number(focused.current.getAttribute("aria-posinset")) - 1;
  const indices = new Set([kept - 1, kept, kept + 1]);
  for (let i = from; i < to; i++) indices.add(i);
  const rows = [...indices].filter((i) => i >= 0 && i < count).sort((a, b) => a - b);
  return (
    <ol
      ref={list}
      class="long-list"
      style={{ "--rows": count }}
      onFocusIn={(event) => {
        focused.current = (event.target as Element).closest("li");
      }}
      onFocusOut={() => {
        focused.current = null;
      }}
    >
      {rows.map(rowOf)}
    </ol>
  );
}
