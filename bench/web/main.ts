// `npm run bench:web`: what the page weighs and costs, and how fast it is. It needs a quiet machine: frames are measured on the
// clock. The page with the numbers goes to bench/results.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { findBrowser } from "../../test/web/find-browser.ts";
import { MOST_BYTES_AT_FIRST, MOST_BYTES_LATER, pageBytes } from "../../test/web/page-bytes.ts";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { median } from "../process/stopwatch.ts";
import { describeMachine, machineSlug } from "../report/machine.ts";
import { buildSeconds } from "./bundle.ts";
import { ROOT, startFlywheel } from "./flywheel-process.ts";
import { type Frames, firstPaint, type JobFrames, jobFrames, LATE_MS } from "./frames.ts";
import { Jobs } from "./jobs.ts";
import { closeTabs, openTabs, serverLoad } from "./tabs.ts";
import { GROUPS, jobTasks, rawTask } from "./tasks.ts";
import { typing } from "./typing.ts";

const USAGE = `npm run bench:web -- [options]
  --quick     one round, and half of the time for the tabs
  --out DIR   where the page goes (default: bench/results; "-" only prints it)`;
const { quick, out } = flagsOrExit((args) => {
  const options = { quick: { type: "boolean", default: false }, out: { type: "string" } } as const;
  const { values } = parseArgs({ args, options });
  return { quick: values.quick, out: values.out === "-" ? null : (values.out ?? join(ROOT, "bench/results")) };
}, USAGE);
const rounds = quick ? 1 : 5;
const seconds = quick ? 10 : 20;
/** After a tab opened or closed, until nothing of that is left to do. */
const SETTLE_MS = 3_000;
const MOST_TASK_MS = 100;
const MOST_KEY_MS = 50;

const executablePath = findBrowser();
if (executablePath === null)
  throw new Error("no browser: apt-get install --no-install-recommends chromium-headless-shell");

interface Line {
  what: string;
  bar: string;
  measured: string;
  isKept: boolean;
}

async function repeat<Value>(work: () => Promise<Value>): Promise<Value[]> {
  const values = [];
  for (let i = 0; i < rounds; i++) values.push(await work());
  return values;
}

function frameLine(what: string, all: readonly Frames[]): Line {
  const slowest = all.map((one) => one.slowest);
  const late = all.reduce((sum, one) => sum + one.late, 0);
  const count = all.reduce((sum, one) => sum + one.frames, 0);
  const task = Math.max(...all.map((one) => one.longestTask));
  const measured = `slowest ${ms(median(slowest))} (median of ${all.length}), worst ${ms(Math.max(...slowest))}; ${late} of ${count} frames over 50 ms; longest task ${ms(task)} of processor time`;
  return { what, bar: "no frame over 50 ms", measured, isKept: late === 0 };
}

/** Of the longest task in each round. */
function taskLine(what: string, longest: readonly number[]): Line {
  const worst = Math.max(...longest);
  const measured = `${ms(median(longest))} of processor time (median of ${longest.length}), worst ${ms(worst)}`;
  return { what, bar: `no task over ${MOST_TASK_MS} ms`, measured, isKept: worst <= MOST_TASK_MS };
}

function percents(loads: readonly number[]): string {
  return `${loads.map((load) => load.toFixed(2)).join(", ")} %`;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

const machine = describeMachine();
const bytes = pageBytes(join(ROOT, "dist/web"));
const weightLine = (what: string, most: number, weight: number): Line => ({
  what: `${what}, gzipped`,
  bar: `${most / 1000} kB`,
  measured: `${(weight / 1000).toFixed(1)} kB`,
  isKept: weight <= most,
});
const building = median(await repeat(async () => buildSeconds()));
const lines: Line[] = [
  weightLine("what index.html links", MOST_BYTES_AT_FIRST, bytes.first),
  weightLine("parts loaded later", MOST_BYTES_LATER, bytes.later),
  {
    what: "building it",
    bar: "2 s of processor time",
    measured: `${building.toFixed(2)} s`,
    isKept: building <= 2,
  },
];
const { url, stop } = await startFlywheel();
const browser = await chromium.launch({ executablePath });
try {
  const paints = await repeat(() => firstPaint(browser, url));
  lines.push({
    what: "first paint with a token, empty cache",
    bar: "500 ms",
    measured: `${ms(median(paints))} (median of ${rounds}), worst ${ms(Math.max(...paints))}`,
    isKept: median(paints) <= 500,
  });
  console.error("writing");
  const written = await repeat(() => typing(browser, url));
  for (const [i, { turns }] of written[0]!.entries()) {
    const keys = written.flatMap((one) => one[i]!.keys);
    lines.push({
      what: `a key is drawn, chat of ${turns} ${turns === 1 ? "turn" : "turns"} with 500 tokens each`,
      bar: `${MOST_KEY_MS} ms`,
      measured: `${ms(median(keys))} (median of ${keys.length}), worst ${ms(Math.max(...keys))}; longest task ${ms(Math.max(...written.map((one) => one[i]!.longestTask)))} of processor time`,
      isKept: median(keys) <= MOST_KEY_MS,
    });
  }
  console.error("raw JSON");
  lines.push(taskLine("raw JSON of 8 answers of 250 tokens", await repeat(() => rawTask(browser, url))));
  console.error("training jobs of 250 and 1,000 groups");
  const jobs = new Jobs(url);
  await jobs.prepare();
  const middle = await jobs.finished(GROUPS);
  const tasks = await repeat(() => jobTasks(browser, url, middle));
  for (const [i, { what }] of tasks[0]!.entries()) {
    lines.push(
      taskLine(
        `a job of 2,000 rollouts: ${what}`,
        tasks.map((round) => round[i]!.longest),
      ),
    );
  }
  const large = await jobs.finished(1000);
  const found = await repeat(() => jobFrames(browser, url, large));
  const frameLines: [keyof JobFrames, string][] = [
    ["open", "opening"],
    ["scroll", "scrolling to the end"],
    ["rollouts", "through the rollouts of a group"],
  ];
  for (const [part, what] of frameLines) {
    lines.push(
      frameLine(
        `1,000 groups of 8: ${what}`,
        found.map((one) => one[part]),
      ),
    );
  }

  const settledLoad = async () => {
    await sleep(SETTLE_MS);
    return serverLoad(url, seconds);
  };
  const compare = async (what: string, job: string) => {
    const alone = [await settledLoad()];
    const watched = await repeat(async () => {
      const tabs = await openTabs(browser, url, job);
      const load = await settledLoad();
      await closeTabs(tabs);
      alone.push(await settledLoad());
      return load;
    });
    const cost = median(watched) - median(alone);
    lines.push({
      what: `server, ten tabs, ${what}, ${seconds} s`,
      bar: "1 % of a core",
      isKept: cost <= 1,
      measured: `${cost.toFixed(2)} % (with them ${percents(watched)}; before, between and after ${percents(alone)})`,
    });
  };
  console.error("ten tabs");
  await compare("nothing to do", large);
  const endless = await jobs.endless();
  // until it trains: before, the server prepares it
  while (((await jobs.client.job(endless)).gradient_steps?.done ?? 0) === 0) await sleep(500);
  await compare("while a job trains", endless);
  await jobs.client.cancel(endless);
} finally {
  await browser.close();
  stop();
}

const page = [
  "# What the web page costs",
  "",
  `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; load before: ${machine.load.toFixed(1)}.`,
  `Browser: Chromium ${browser.version()}, headless. Command: \`npm run bench:web${quick ? " -- --quick" : ""}\`.`,
  "",
  "The server runs the bundled model on this machine; so does the browser. Frames are measured on the clock, in the page. The",
  "server's load is the processor time of its process; the trainer is another process. Tabs cost the difference of the medians,",
  "with them and without, once they have loaded.",
  "",
  `Every frame from the first to the last counts. One is over 50 ms if it took more than ${LATE_MS} ms: the browser's clock has steps of`,
  "0.1 ms, and three frames of 16.67 ms make 50.0. A task is what the page's thread does in one go; its processor time grows little",
  "when others keep the machine busy, the time between frames does.",
  "",
  "| | bar | measured | |",
  "|---|---|---|---|",
  ...lines.map(
    ({ what, bar, measured, isKept }) => `| ${what} | ${bar} | ${measured} | ${isKept ? "kept" : "**missed**"} |`,
  ),
  "",
].join("\n");
console.log(page);
if (out !== null) {
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, `${new Date().toISOString().slice(0, 10)}-${machineSlug(machine)}-web.md`), page);
}
