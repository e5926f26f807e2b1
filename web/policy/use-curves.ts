// The curves of policies and jobs. Rows of gradient steps never change, so only new ones are asked for; rows of steps may still
// get metrics (`log`), so all of them are.
import { useRef } from "preact/hooks";
import { useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import { type Columns, type CurvePage, withRows } from "./curve-charts.ts";
import type { X } from "./curve-settings.ts";

export interface CurveSource {
  /** Of the policy or the job. */
  path: string;
  /** Changes when there may be new rows. */
  turn: string;
}

interface Known {
  turn: string;
  page: CurvePage;
}

/** The columns of each source, in their order; null: while they are on their way. */
export function useCurves(
  sources: readonly CurveSource[],
  x: X,
): { columns: readonly Columns[] | null; error: string | null } {
  const known = useRef(new Map<string, Known>());
  const of = [x, ...sources.map(({ path }) => path)].join(" ");
  const turns = sources.map(({ turn }) => turn).join(" ");
  const { data, error } = useQuery(`${of} ${turns}`, async (signal) => {
    const columns: Columns[] = [];
    for (const { path, turn } of sources) {
      const key = `${x} ${path}`;
      const before = known.current.get(key);
      if (before?.turn !== turn) {
        const start = x === "gradient_step" && before !== undefined ? before.page : null;
        known.current.set(key, { turn, page: await readFrom(start, `${path}/curves`, x, signal) });
      }
      columns.push(known.current.get(key)!.page.columns);
    }
    return { of, columns };
  });
  // While another axis or source is on its way there is nothing to show.
  return { columns: data?.of === of ? data.columns : null, error };
}

async function readFrom(start: CurvePage | null, path: string, x: X, signal: AbortSignal): Promise<CurvePage> {
  for (let page = start; ; ) {
    const more = await getJson<CurvePage>(path, { query: { x, after: page?.next }, signal });
    page = page === null ? more : withRows(page, more, x);
    if (!more.has_more) return page;
  }
}
