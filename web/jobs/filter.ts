// Which groups of a job are shown. The filter is in the address, so that a link shares it.
import type { GroupRow, RolloutRow } from "./records.ts";
import type { Said } from "./use-said.ts";

export interface Filter {
  /** A verdict; empty: all. */
  verdict: string;
  /** Bounds of the reward, inclusive; null: none. */
  least: number | null;
  most: number | null;
  /** Bounds of the number of tokens, inclusive; null: none. */
  shortest: number | null;
  longest: number | null;
  /** Part of the task, of an exception or of what is said in a rollout, in any case. */
  text: string;
}

export function filterFrom(query: string): Filter {
  const params = new URLSearchParams(query);
  return {
    verdict: params.get("verdict") ?? "",
    least: bound(params.get("min")),
    most: bound(params.get("max")),
    shortest: bound(params.get("shortest")),
    longest: bound(params.get("longest")),
    text: params.get("text") ?? "",
  };
}

/** `query` with this filter, without "?". What else it says stays. */
export function queryOf({ verdict, least, most, shortest, longest, text }: Filter, query = ""): string {
  const params = new URLSearchParams(query);
  for (const name of ["verdict", "min", "max", "shortest", "longest", "text"]) params.delete(name);
  if (verdict !== "") params.set("verdict", verdict);
  for (const [name, value] of Object.entries({ min: least, max: most, shortest, longest })) {
    if (value !== null) params.set(name, String(value));
  }
  if (text !== "") params.set("text", text);
  return params.toString();
}

/** A number as it was typed; null if it is none. */
export function bound(text: string | null): number | null {
  if (text === null || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Groups with the text and at least one rollout that fits. If only rollouts have the text, one of these. */
export function filterGroups(groups: readonly GroupRow[], filter: Filter, said: Said): readonly GroupRow[] {
  const isAboutRollouts = queryOf({ ...filter, text: "" }) !== "";
  if (filter.text === "" && !isAboutRollouts) return groups;
  return groups.filter((group) => {
    const { trajectories } = group;
    if (!hasText(group, filter.text)) return said.get(group.group)?.some((index) => fits(trajectories[index]!, filter));
    return !isAboutRollouts || trajectories.some((one) => fits(one, filter));
  });
}

/** Whether a rollout has the verdict, the reward and the length. */
export function fits(one: Pick<RolloutRow, "status" | "reward" | "tokens">, filter: Filter): boolean {
  if (filter.verdict !== "" && one.status !== filter.verdict) return false;
  return isWithin(one.reward, filter.least, filter.most) && isWithin(one.tokens, filter.shortest, filter.longest);
}

function isWithin(value: number | null, least: number | null, most: number | null): boolean {
  if (least === null && most === null) return true;
  return value !== null && value >= (least ?? -Infinity) && value <= (most ?? Infinity);
}

function hasText({ task, exceptions }: GroupRow, text: string): boolean {
  const wanted = text.toLowerCase();
  const places = [task ?? "", ...exceptions.map(({ type, message }) => `${type ?? ""} ${message}`)];
  return places.some((place) => place.toLowerCase().includes(wanted));
}
