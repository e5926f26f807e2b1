// `npm run simulate`: plays seeds until time is over, or one of them. Exits with 1 and what is wrong if an invariant is broken.

import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { simulate } from "./simulation.ts";

const USAGE = `npm run simulate -- [options]
  --seed N      plays this seed, and says all that happens
  --from N      plays seeds from N on (default: a random number)
  --seeds N     so many (default: as many as there is time for)
  --minutes N   for so long (default: 2)`;

interface Flags {
  seed: number | null;
  from: number;
  seeds: number;
  minutes: number;
}

/** Throws with a message for the user. */
function readFlags(args: string[]): Flags {
  const number = { type: "string" } as const;
  const { values } = parseArgs({ args, options: { seed: number, from: number, seeds: number, minutes: number } });
  const whole = (name: "seed" | "from" | "seeds", otherwise: number) => {
    const value = Number(values[name] ?? otherwise);
    if (value !== Number.POSITIVE_INFINITY && !(Number.isInteger(value) && value >= 0)) {
      throw new Error(`--${name} takes a whole number; found "${values[name]}"`);
    }
    return value;
  };
  const seeds = whole("seeds", Number.POSITIVE_INFINITY);
  const minutes = Number(values.minutes ?? (values.seeds === undefined ? 2 : Number.POSITIVE_INFINITY));
  if (!(minutes > 0)) throw new Error(`--minutes takes a positive number; found "${values.minutes}"`);
  return {
    seed: values.seed === undefined ? null : whole("seed", 0),
    from: whole("from", randomInt(2 ** 31)),
    seeds,
    minutes,
  };
}

let flags: Flags;
try {
  flags = readFlags(process.argv.slice(2));
} catch (error) {
  console.error(`${(error as Error).message}\n\n${USAGE}`);
  process.exit(2);
}
const failures: string[] = [];
const began = performance.now();
const seconds = () => (performance.now() - began) / 1000;
const sums = { events: 0, replies: 0, tokens: 0, jobs: 0, policies: 0, ms: 0 };
const faults: Record<string, number> = {};
const reached: Record<string, number> = {};
let passed = 0;
let toldTimes = 1;

function addUp(sums: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
}

async function play(seed: number): Promise<void> {
  // what a seed that never ends leaves to be seen
  process.title = `simulate --seed ${seed}`;
  if (seconds() > 15 * toldTimes) {
    toldTimes++;
    console.log(`${Math.round(seconds())} s: seed ${seed}`);
  }
  const { wrong, lines, plan, ...facts } = await simulate(seed);
  const again = passed % 25 === 0 ? await simulate(seed) : null;
  if (again && again.digest !== facts.digest) wrong.push(`two runs differ: ${facts.digest}, then ${again.digest}`);
  if (flags.seed !== null) {
    for (const line of lines) console.log(line);
    console.log(JSON.stringify(facts, null, 2));
  }
  sums.events += facts.events;
  sums.replies += facts.replies;
  sums.tokens += facts.tokens;
  sums.policies += facts.comparedPolicies;
  sums.ms += facts.ms;
  for (const count of Object.values(facts.jobs)) sums.jobs += count;
  addUp(faults, facts.faults);
  addUp(reached, facts.reached);
  if (wrong.length === 0) {
    passed++;
    return;
  }
  failures.push(`seed ${seed}: ${wrong[0]}`);
  for (const what of wrong.slice(0, 5)) console.error(`seed ${seed}: ${what}`);
  console.error(`repeat it with: npm run simulate -- --seed ${seed}`);
}

if (flags.seed !== null) await play(flags.seed);
else {
  console.log(`seeds from ${flags.from} on`);
  for (let n = 0; n < flags.seeds && seconds() < 60 * flags.minutes; n++) await play(flags.from + n);
}
const played = passed + failures.length;
const perSeed = (count: number) => Math.round(count / played);
const count = Object.values(faults).reduce((sum, one) => sum + one, 0);
console.log(
  `${played} seeds in ${seconds().toFixed(0)} s, ${failures.length} failed; per seed ${perSeed(sums.events)} events, ${perSeed(count)} faults, ` +
    `${perSeed(sums.jobs)} jobs, ${perSeed(sums.replies)} replies compared, ${perSeed(sums.ms / 1000)} s of its time`,
);
console.log(`faults: ${JSON.stringify(faults)}\nreached: ${JSON.stringify(reached)}`);
if (process.env.FLYWHEEL_TIER_COUNTS !== undefined) {
  writeFileSync(
    process.env.FLYWHEEL_TIER_COUNTS,
    JSON.stringify({ passed, failed: failures.length, skipped: {}, failures: failures.slice(0, 20) }),
  );
}
process.exit(failures.length > 0 ? 1 : 0);
