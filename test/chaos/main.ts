// `npm run chaos -- --minutes 10`: a fleet under random faults. Exits with 1 and what is wrong if an invariant is broken.

import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { chaos } from "./chaos.ts";

const USAGE = `npm run chaos -- [options]
  --minutes N   how long bad things happen (default: 10)
  --seed N      repeats the choices of an earlier run (default: a random one)`;

interface Flags {
  minutes: number;
  seed: number;
}

/** Throws with a message for the user. */
function readFlags(args: string[]): Flags {
  const { values } = parseArgs({ args, options: { minutes: { type: "string" }, seed: { type: "string" } } });
  const minutes = Number(values.minutes ?? 10);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  if (!(minutes > 0)) throw new Error(`--minutes takes a positive number; found "${values.minutes}"`);
  if (!Number.isInteger(seed) || seed < 0) throw new Error(`--seed takes a whole number; found "${values.seed}"`);
  return { minutes, seed };
}

let flags: Flags;
try {
  flags = readFlags(process.argv.slice(2));
} catch (error) {
  console.error(`${(error as Error).message}\n\n${USAGE}`);
  process.exit(2);
}
// the servers end with this process
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const began = Date.now();
const say = (what: string) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${what}`);
const { wrong, folder, ...facts } = await chaos({
  seed: flags.seed,
  ms: flags.minutes * 60_000,
  faults: Number.POSITIVE_INFINITY,
  say,
});
say(JSON.stringify(facts));
if (wrong.length > 0) {
  for (const one of wrong) console.error(`violated: ${one}`);
  console.error(`seed ${flags.seed}; the logs are in ${folder}`);
} else rmSync(folder, { recursive: true, force: true });
process.exit(wrong.length > 0 ? 1 : 0);
