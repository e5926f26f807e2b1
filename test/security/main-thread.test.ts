// Requests that make the main thread work for long, so that every other client waits. Most are just below what the server accepts,
// a few far above. What counts is the processor time between two turns of the event loop, beside that of a calculation whose
// length is known: neither depends on what else the machine does.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LONG_WORK } from "./long-work.ts";
import { startVictim, type Victim } from "./victim.ts";

const METER = new URL("turn-meter.mjs", import.meta.url).href;

/** In units: see `unit`. About 100 ms where it was measured. */
const LONGEST_TURN = 20;

const CHOSEN = [
  "chat_template_kwargs",
  "kwargs in one variable",
  "unknown fields",
  "tool_calls, as many as allowed",
  "tools, as many as allowed",
  "one schema, as much as allowed",
  "logit_bias, as many as allowed",
  "stop, as many as allowed",
  "arguments as text, as much as allowed",
  "batch, one schema as text",
  "batch, stops",
  "bad_words of combining marks",
  "bad_words of spaces",
  "1,000 prompts with bias",
  "1,000 prompts with stops",
  "long numbers",
  "white space",
  "tokenize 1 MiB: spaces",
  "tokenize 1 MiB: digits",
  "tokenize 1 MiB: three-byte letters",
  "tokenize a chat of 1 MiB: emoji",
  "a cut prompt of 3 MiB: three-byte letters",
  "32 prompts, echo, logprobs",
  "prompt_logprobs",
  "inspect a long text",
  "detokenize",
  "training fields",
  "training metadata, as much as allowed",
  "training messages, as many as allowed",
  "training calls with numbers such as 1.5",
];

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim({
    env: { NODE_OPTIONS: `--import ${METER}` },
    args: ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
  });
  for (let i = 0; i < 3; i++) await send("harmless");
});
afterAll(() => victim.stop());

async function send(name: string): Promise<number> {
  const { path, body } = LONG_WORK.find((work) => work.name === name)!;
  const response = await victim.request("POST", path, body());
  await response.arrayBuffer();
  return response.status;
}

/** The longest turn of the event loop since the last call, in milliseconds of processor time. */
async function longestTurn(): Promise<number> {
  const from = victim.printed().length;
  victim.process.kill("SIGUSR2");
  for (;;) {
    const found = /longest turn ([\d.]+) ms/.exec(victim.printed().slice(from));
    if (found) return Number(found[1]);
    await sleep(2);
  }
}

/** Milliseconds of processor time for a fixed piece of work: 5 on a Xeon of 2.5 GHz. */
function unit(): number {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ a: `${i}`, b: [i] })));
  const times = Array.from({ length: 7 }, () => {
    const before = process.cpuUsage();
    JSON.parse(text);
    const used = process.cpuUsage(before);
    return (used.user + used.system) / 1000;
  });
  return times.sort((a, b) => a - b)[3]!;
}

it.each(CHOSEN)(
  "%s",
  async (name) => {
    await longestTurn();
    const status = await send(name);
    await sleep(5);
    expect(await longestTurn()).toBeLessThan(LONGEST_TURN * unit());
    expect(status).toBeLessThan(500);
  },
  60_000,
);
