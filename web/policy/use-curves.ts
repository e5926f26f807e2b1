// The curves of a policy. Rows of gradient steps never change, so only new ones are asked for; rows of steps may still get
// metrics (`log`), so all of them are.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import { type CurvePage, withRows } from "./curve-charts.ts";
import type { X } from "./curve-settings.ts";

/** `turn` changes when there may be new rows. */
export function useCurves(
  path: string,
  x: X,
  turn: string,
): { columns: CurvePage["columns"] | null; error: string | null } {
  const known = useSignal<{ of: string; page: CurvePage } | null>(null);
  const of = `${path} ${x}`;
  const { data, error } = useQuery(`${of} ${turn}`, async (signal) => {
    const start = x === "gradient_step" && known.value?.of === of ? known.value.page : null;
    return { of, page: await readFrom(start, `${path}/curves`, x, signal) };
  });
  useEffect(() => {
    known.value = data;
  }, [data]);
  // While the other axis is on its way there is nothing to show.
  return { columns: data?.of === of ? data.page.columns : null, error };
}

async function readFrom(start: CurvePage | null, path: string, x: X, signal: AbortSignal): Promise<CurvePage> {
  for (let page = start; ; ) {
    const more = await getJson<CurvePage>(path, { query: { x, after: page?.next }, signal });
    page = page === null ? more : withRows(page, more, x);
    if (!more.has_more) return page;
  }
}
