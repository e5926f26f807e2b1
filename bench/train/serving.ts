// `node bench/dist/bench/train/serving.js`: measures what serving loses while training runs on the same cores. A server with
// the bundled model (or --model DIR) answers streams, first alone, then while jobs train. Prints tokens per second and the
// time between tokens for both.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { FlywheelClient } from "../../src/client/client.ts";
import { serverSentEvents } from "../../src/client/server-sent-events.ts";
import { describeMachine } from "../report/machine.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "bundled" },
    streams: { type: "string", default: "8" },
    seconds: { type: "string", default: "20" },
  },
});
const [streams, seconds] = [Number(values.streams), Number(values.seconds)];
const data = mkdtempSync(join(tmpdir(), "bench-serving-"));
const { child, url } = await startFlywheel();
const client = new FlywheelClient({ baseUrl: url, apiKey: "bench" });
const [base] = await client.baseModels();

async function startFlywheel(): Promise<{ child: ChildProcess; url: string }> {
  // from bench/dist/bench/train/ to the package's root
  const program = fileURLToPath(new URL("../../../../bin/flywheel", import.meta.url));
  const args = ["serve", values.model, "--port", "0", "--data", data, "--api-key", "bench", "--log-level", "error"];
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^listening on (\S+)/.exec(line);
    if (found) return { child, url: found[1]! };
  }
  throw new Error("the server did not start");
}

/** Milliseconds between chunks, over one stream after another until `until`. */
async function stream(index: number, until: number): Promise<number[]> {
  const gaps: number[] = [];
  while (performance.now() < until) {
    const body = {
      ...{ model: base, stream: true, max_tokens: 200, ignore_eos: true, temperature: 1, seed: index },
      messages: [{ role: "user", content: `Tell me story number ${index}.` }],
    };
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer bench", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    let last = performance.now();
    for await (const _chunk of serverSentEvents(response.body!)) {
      const now = performance.now();
      if (now > until) break;
      gaps.push(now - last);
      last = now;
    }
  }
  return gaps;
}

async function serve(): Promise<{ tokensPerSecond: number; median: number; worst: number }> {
  const until = performance.now() + seconds * 1000;
  const gaps = (await Promise.all(Array.from({ length: streams }, (_, i) => stream(i, until)))).flat();
  gaps.sort((a, b) => a - b);
  const at = (share: number) => gaps[Math.floor(share * (gaps.length - 1))]!;
  return { tokensPerSecond: gaps.length / seconds, median: at(0.5), worst: at(0.99) };
}

/** Trains jobs of 32 sequences of about 100 tokens, at least one, until stopped. Returns training tokens per second. */
async function train(stop: AbortSignal): Promise<number> {
  const model = await client.register({ project: "bench", name: "busy", base_model: base! });
  const messages = [{ role: "user", content: "Count from one to thirty." }];
  const sampled = await client.chat({
    model: "busy",
    messages,
    n: 32,
    max_tokens: 80,
    temperature: 1,
    ignore_eos: true,
  });
  const trajectories = sampled.choices.map((choice, i) => ({
    messages_and_choices: [...messages, choice],
    reward: i % 2,
  }));
  let [tokens, spent] = [0, 0];
  do {
    const { report } = await client.train(model.id, [{ trajectories }], { config: { grad_accumulation_sequences: 8 } });
    tokens += report!.usage!.tokens;
    spent += report!.usage!.seconds;
  } while (!stop.aborted);
  return tokens / spent;
}

try {
  const machine = describeMachine();
  // The first adapter makes the engine build the graph that can serve adapters.
  await train(AbortSignal.abort());
  await serve();
  const alone = await serve();
  const stop = new AbortController();
  const training = train(stop.signal);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const beside = await serve();
  stop.abort();
  const rate = await training;
  const row = (name: string, r: typeof alone) =>
    `| ${name} | ${r.tokensPerSecond.toFixed(0)} | ${r.median.toFixed(1)} ms | ${r.worst.toFixed(1)} ms |`;
  console.log(`${machine.cpu}, ${machine.cores} cores; ${base}; ${streams} streams; load ${machine.load.toFixed(1)}\n`);
  console.log("| serving | tokens/s | median gap | 99 % gap |\n|---|---|---|---|");
  console.log(row("alone", alone));
  console.log(row("while training", beside));
  console.log(`\ntraining meanwhile: ${rate.toFixed(0)} tokens/s`);
} finally {
  child.kill("SIGTERM");
  await once(child, "exit");
  rmSync(data, { recursive: true, force: true });
}
