// `npm run bench:remote`: what --engine-url costs. A replica that answers at once, and a server in front of it, each in
// a process of its own, with 256 streams. The same server with an engine in its own process is the reference. Tokens come
// one by one, every 20 ms on each stream: the most expensive way to get them.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeMachine, machineSlug } from "../report/machine.ts";
import { SLOW_ID, TICK_MS } from "./pace.ts";

const STREAMS = 256;
const TOKENS = 100;
const ROUNDS = 3;
/** Of a slow stream: one every half second. */
const SLOW_TOKENS = 8;
/** Of a busy stream: it lasts longer than the requests that are measured beside it. */
const BUSY_TOKENS = 250;

interface Child {
  process: ChildProcess;
  url: string;
}

async function start(entry: string, ...args: string[]): Promise<Child> {
  const child = fork(fileURLToPath(new URL(entry, import.meta.url)), args);
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  return { process: child, url };
}

/** Microseconds of processor time that a child has used. */
async function cpuOf({ process: child }: Child): Promise<number> {
  child.send("cpu");
  const [{ cpu }] = (await once(child, "message")) as [{ cpu: number }];
  return cpu;
}

const agent = new Agent({ keepAlive: true, maxSockets: STREAMS + 1 });

/** Streams one completion. Resolves to the milliseconds to its first token. */
function stream(url: string, tokens = TOKENS, prompt: readonly number[] = [1, 2, 3, 4]): Promise<number> {
  const body = JSON.stringify({ prompt, max_tokens: tokens, stream: true, ignore_eos: true, n: 1 });
  const headers = { authorization: "Bearer k", "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const began = performance.now();
    let first = 0;
    const sent = request(`${url}/v1/completions`, { method: "POST", agent, headers }, (response) => {
      response.on("data", () => {
        first ||= performance.now() - began;
      });
      response.on("end", () => (response.statusCode === 200 ? resolve(first) : reject(new Error("refused"))));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

interface Measured {
  /** Microseconds of the server's processor time for each token. */
  cpu: number;
  /** Milliseconds, of the median stream. */
  firstToken: number;
  whole: number;
}

/** One request at a time: what the path adds when nothing else runs. */
async function alone(url: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 25; i++) times.push(await stream(url, 1));
  return median(times);
}

/** The same beside other streams that have begun a second ago. */
async function beside(url: string, tokens: number, prompt?: readonly number[]): Promise<number> {
  const others = Array.from({ length: STREAMS }, () => stream(url, tokens, prompt));
  await delay(1000);
  const time = await alone(url);
  await Promise.all(others);
  return time;
}

async function round(url: string, child: Child | null): Promise<Measured> {
  const before = child === null ? 0 : await cpuOf(child);
  const began = performance.now();
  const firsts = await Promise.all(Array.from({ length: STREAMS }, () => stream(url)));
  const whole = performance.now() - began;
  const cpu = child === null ? 0 : ((await cpuOf(child)) - before) / (STREAMS * TOKENS);
  return { cpu, firstToken: median(firsts), whole };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

const replica = await start("./paced-replica.js");
const remote = await start("./server.js", replica.url);
const embedded = await start("./server.js");
const measured: Record<"direct" | "embedded" | "remote", Measured[]> = { direct: [], embedded: [], remote: [] };
const lonely: Record<"direct" | "embedded" | "remote", number[]> = { direct: [], embedded: [], remote: [] };
const besideSlow: typeof lonely = { direct: [], embedded: [], remote: [] };
const besideBusy: typeof lonely = { direct: [], embedded: [], remote: [] };
const paths = [
  ["direct", replica.url, null],
  ["embedded", embedded.url, embedded],
  ["remote", remote.url, remote],
] as const;
for (const [, url, child] of paths) await round(url, child); // warms up
for (let i = 0; i < ROUNDS; i++) {
  for (const [name, url, child] of paths) {
    measured[name].push(await round(url, child));
    lonely[name].push(await alone(url));
    besideSlow[name].push(await beside(url, SLOW_TOKENS, [SLOW_ID, 2, 3, 4]));
    besideBusy[name].push(await beside(url, BUSY_TOKENS));
    const firsts = [lonely, besideSlow, besideBusy].map((of) => of[name].at(-1)!.toFixed(1));
    console.error(name, JSON.stringify(measured[name].at(-1)), ...firsts);
  }
}
const middle = (name: keyof typeof measured, of: keyof Measured) => median(measured[name].map((one) => one[of]));
const row = (label: string, name: keyof typeof measured) =>
  `| ${label} | ${name === "direct" ? "" : middle(name, "cpu").toFixed(1)} | ${middle(name, "firstToken").toFixed(1)} | ` +
  `${middle(name, "whole").toFixed(0)} | ${[lonely, besideSlow, besideBusy].map((of) => median(of[name]).toFixed(1)).join(" | ")} |`;
const machine = describeMachine();
const addedMs = (of: typeof lonely) => (median(of.remote) - median(of.embedded)).toFixed(1);
const added = middle("remote", "cpu") - middle("embedded", "cpu");
const page = `# What a remote engine costs

${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; load before: ${machine.load.toFixed(1)}.
Command: \`npm run bench:remote\`. ${STREAMS} streams of ${TOKENS} tokens, a token every ${TICK_MS} ms on each; median of ${ROUNDS} rounds.
Bars: 60 µs of processor time for each token, 1 ms of latency.

| path | CPU of the server, µs per token | first token, all at once, ms | all streams, ms | first token alone, ms | beside slow streams, ms | beside busy streams, ms |
|---|---:|---:|---:|---:|---:|---:|
${row("client → replica", "direct")}
${row("client → server with an engine in its process", "embedded")}
${row("client → server → replica", "remote")}

The remote path adds ${added.toFixed(1)} µs per token. It adds ${addedMs(lonely)} ms to the first token of a single stream, ${addedMs(besideSlow)} ms beside
${STREAMS} streams that get a token every half second, and ${addedMs(besideBusy)} ms beside ${STREAMS} streams that get one every ${TICK_MS} ms.
`;
console.log(page);
const folder = fileURLToPath(new URL("../../../results", import.meta.url));
if (!process.argv.includes("-")) {
  mkdirSync(folder, { recursive: true });
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(`${folder}/${day}-${machineSlug(machine)}-remote.md`, page);
}
for (const child of [replica, remote, embedded]) child.process.disconnect();
agent.destroy();
