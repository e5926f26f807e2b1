// Which groups of a job are shown. The filter is in the address, so that a link shares it.
import type { GroupRow, TryRow } from "./records.ts";

export interface Filter {
  /** A verdict; empty: all. */
  verdict: string;
  /** Bounds of the reward, inclusive; null: none. */
  least: number | null;
  most: number | null;
  /** Part of the task or of an exception, in any case. */
  text: string;
}

export function filterFrom(query: string): Filter {
  const params = new URLSearchParams(query);
  return {
    verdict: params.get("verdict") ?? "",
    least: bound(params.get("min")),
    most: bound(params.get("max")),
    text: params.get("text") ?? "",
  };
}

export function queryOf({ verdict, least, most, text }: Filter): string {
  const params = new URLSearchParams();
  if (verdict !== "") params.set("verdict", verdict);
  if (least !== null) params.set("min", String(least));
  if (most !== null) params.set("max", String(most));
  if (text !== "") params.set("text", text);
  return params.toString();
}

/** A number as it was typed; null if it is none. */
export function bound(text: string | null): number | null {
  if (text === null || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

export function isSet({ verdict, least, most, text }: Filter): boolean {
  return verdict !== "" || least !== null || most !== null || text !== "";
}

/** Groups with the text and at least one try that fits. */
export function filterGroups(groups: readonly GroupRow[], filter: Filter): readonly GroupRow[] {
  if (!isSet(filter)) return groups;
  const wantsTry = filter.verdict !== "" || filter.least !== null || filter.most !== null;
  return groups.filter(
    (group) => hasText(group, filter.text) && (!wantsTry || group.trajectories.some((one) => fits(one, filter))),
  );
}

/** Whether a try has the verdict and the reward. */
export function fits({ status, reward }: Pick<TryRow, "status" | "reward">, { verdict, least, most }: Filter): boolean {
  if (verdict !== "" && status !== verdict) return false;
  if (least === null && most === null) return true;
  return reward !== null && reward >= (least ?? -Infinity) && reward <= (most ?? Infinity);
}

function hasText({ task, exceptions }: GroupRow, text: string): boolean {
  const wanted = text.toLowerCase();
  const places = [task ?? "", ...exceptions.map(({ type, message }) => `${type ?? ""} ${message}`)];
  return places.some((place) => place.toLowerCase().includes(wanted));
}
