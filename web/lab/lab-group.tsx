// The rollouts of a group: their rewards, which can be changed, and what follows from them.
import { count, number } from "../format.ts";
import type { GroupRow } from "../jobs/records.ts";
import { TableScroll } from "../parts/table-scroll.tsx";
import { placeOf, type Rewards, type Signals } from "./signals.ts";

export interface LabGroupProps {
  group: GroupRow;
  /** The rollout whose tokens are shown. */
  trajectory: number;
  signals: Signals;
  rewards: Rewards;
  onRewards: (rewards: Rewards) => void;
  onRollout: (trajectory: number) => void;
}

export function LabGroup({ group, trajectory, signals, rewards, onRewards, onRollout }: LabGroupProps) {
  const set = (place: string, recorded: number | null, value: number) => {
    const { [place]: _before, ...rest } = rewards;
    onRewards(value === recorded || Number.isNaN(value) ? rest : { ...rest, [place]: value });
  };
  const edits = Object.keys(rewards).length;
  return (
    <>
      <p class="task-line">{group.task}</p>
      <TableScroll label={`Rollouts of group ${group.group}`}>
        <table class="lab-group">
          <caption class="sr-only">Rewards of group {group.group}, and what follows from them</caption>
          <thead>
            <tr>
              <th>rollout</th>
              <th>reward</th>
              <th>advantage</th>
              <th>in the job</th>
              <th>weight</th>
              <th>verdict</th>
            </tr>
          </thead>
          <tbody>
            {group.trajectories.map((row) => {
              const place = placeOf(group.group, row.trajectory);
              const { reward, advantage, weight, isTrained } = signals.of.get(place)!;
              const name = `rollout ${row.trajectory + 1}`;
              return (
                <tr key={place} aria-current={row.trajectory === trajectory ? "true" : undefined}>
                  <td>
                    <button type="button" class="small" onClick={() => onRollout(row.trajectory)}>
                      {name}
                    </button>
                  </td>
                  <td>
                    <input
                      type="number"
                      step="any"
                      aria-label={`Reward of ${name}`}
                      class={rewards[place] === undefined ? "" : "changed"}
                      value={reward}
                      onInput={(event) => set(place, row.reward, event.currentTarget.valueAsNumber)}
                    />
                  </td>
                  <td class="num">
                    <data value={advantage}>{number(advantage)}</data>
                  </td>
                  <td class="num muted">{row.advantage === null ? "–" : number(row.advantage)}</td>
                  <td class="num">
                    <data value={weight}>{number(weight)}</data>
                  </td>
                  <td>{isTrained ? "trained" : row.status === "trained" ? "zero_advantage" : row.status}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </TableScroll>
      {edits > 0 && (
        <p>
          {count(edits, "reward")} changed.{" "}
          <button type="button" class="small" onClick={() => onRewards({})}>
            Take back
          </button>
        </p>
      )}
    </>
  );
}
