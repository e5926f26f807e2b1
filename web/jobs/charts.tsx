// The charts of a job: how rewards are spread, whether length has to do with them, and how many steps old the policies were.
import { number } from "../format.ts";
import { type Age, agesOf, histogram, type Point, points, rangeOf, scale } from "./histogram.ts";
import type { GroupRow } from "./records.ts";

const WIDTH = 300;
const HEIGHT = 110;

/** `fromStep`: the step that the job trained from; null before it starts. */
export function Charts({ groups, fromStep }: { groups: readonly GroupRow[]; fromStep: number | null }) {
  const rewards = groups.flatMap((group) => group.rewards);
  if (rewards.length === 0) return null;
  return (
    <div class="job-charts">
      <Rewards rewards={rewards} />
      <RewardLength points={points(groups)} />
      <OffPolicy ages={fromStep === null ? [] : agesOf(groups, fromStep)} />
    </div>
  );
}

function Rewards({ rewards }: { rewards: readonly number[] }) {
  const bins = histogram(rewards);
  const most = Math.max(...bins.map(({ count }) => count));
  const { low, high } = rangeOf(rewards);
  const width = WIDTH / bins.length;
  const label = `${rewards.length} rewards from ${number(low)} to ${number(high)}`;
  return (
    <figure>
      <figcaption>Rewards</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
        {bins.map(({ from, to, count }, i) => {
          // A bin with one rollout must be visible beside one with thousands.
          const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
          return (
            <rect key={i} x={i * width + 0.5} y={HEIGHT - height} width={width - 1} height={height}>
              <title>
                {number(from)} to {number(to)}: {count}
              </title>
            </rect>
          );
        })}
      </svg>
      <p class="axis num" aria-hidden="true">
        <span>{number(low)}</span>
        <span>{number(high)}</span>
      </p>
    </figure>
  );
}

function OffPolicy({ ages }: { ages: readonly Age[] }) {
  const most = Math.max(...ages.map(({ count }) => count));
  if (ages.length === 0) return null;
  return (
    <figure>
      <figcaption>Steps off policy</figcaption>
      <table class="ages">
        <caption class="sr-only">How many steps old the policy was that began each rollout</caption>
        <tbody>
          {ages.map(({ steps, count }) => (
            <tr key={steps}>
              <th scope="row" class="num">
                {steps}
              </th>
              <td class="num">{number(count)}</td>
              <td>
                <span class="bar" style={{ "--share": `${(count / most) * 100}%` }} aria-hidden="true" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function RewardLength({ points: all }: { points: readonly Point[] }) {
  if (all.length === 0) return null;
  const lengths = all.map(({ length }) => length);
  const { low, high } = rangeOf(lengths);
  const [x, y] = [scale(lengths), scale(all.map(({ reward }) => reward))];
  // One path of dots for each colour, and one dot for all rollouts at a place: a job may have many thousands.
  const dots = (isTrained: boolean) => {
    const places = new Set<number>();
    for (const { length, reward, isTrained: is } of all) {
      if (is === isTrained)
        places.add(Math.round(x(length) * (WIDTH - 8)) * HEIGHT + Math.round((1 - y(reward)) * (HEIGHT - 8)));
    }
    return [...places].map((place) => `M${4 + Math.floor(place / HEIGHT)} ${4 + (place % HEIGHT)}h0`).join("");
  };
  const left = dots(false);
  return (
    <figure>
      <figcaption>Reward against length{left !== "" && <span class="left-out-key"> ● left out</span>}</figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Rewards of ${all.length} rollouts of ${low} to ${high} tokens`}
      >
        <path class="dots" d={dots(true)} />
        <path class="dots left-out" d={left} />
      </svg>
      <p class="axis num" aria-hidden="true">
        <span>{number(low)} tokens</span>
        <span>{number(high)}</span>
      </p>
    </figure>
  );
}
