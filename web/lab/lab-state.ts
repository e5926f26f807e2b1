// What the lab is set to, and its form in the address: which rollout, which settings were changed, and which rewards.
import { useEffect, useState } from "preact/hooks";
import { noteQuery } from "../address.ts";
import { COLOURS, type Colour } from "../jobs/token-colours.ts";
import { type Changes, KNOBS } from "./knobs.ts";
import type { Rewards } from "./signals.ts";

export interface LabState {
  group: number;
  trajectory: number;
  colour: Colour;
  changes: Changes;
  rewards: Rewards;
}

/** A slider that is dragged would write the address more often than browsers allow. */
const WRITE_MS = 200;

const PLACE = /^(\d+)\.(\d+)$/;
const REWARD = /^(\d+\.\d+):(-?[\d.]+(?:e[+-]?\d+)?)$/;

export function labFrom(query: string): LabState {
  const params = new URLSearchParams(query);
  const [, group, trajectory] = PLACE.exec(params.get("at") ?? "") ?? [];
  const rewards = params.getAll("r").map((text) => REWARD.exec(text));
  return {
    group: Number(group ?? 0),
    trajectory: Number(trajectory ?? 0),
    colour: COLOURS.find((name) => name === params.get("colour")) ?? "gradient",
    changes: Object.fromEntries(KNOBS.flatMap(({ name }) => (params.has(name) ? [[name, params.get(name)!]] : []))),
    rewards: Object.fromEntries(rewards.flatMap((found) => (found === null ? [] : [[found[1]!, Number(found[2])]]))),
  };
}

export function labQuery({ group, trajectory, colour, changes, rewards }: LabState): string {
  const params = new URLSearchParams({ at: `${group}.${trajectory}` });
  if (colour !== "gradient") params.set("colour", colour);
  for (const [name, value] of Object.entries(changes)) params.set(name, value);
  for (const [place, reward] of Object.entries(rewards)) params.append("r", `${place}:${reward}`);
  return params.toString();
}

/** The state of the address, and a way to change it. The address follows without an entry in the history. */
export function useLab(): [LabState, (change: Partial<LabState>) => void] {
  const [state, setState] = useState(() => labFrom(location.search));
  const query = labQuery(state);
  useEffect(() => {
    const path = location.pathname;
    const timer = setTimeout(() => {
      if (location.pathname === path) noteQuery(query);
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [query]);
  return [state, (change) => setState((before) => ({ ...before, ...change }))];
}
