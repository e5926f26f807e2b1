// Measures what compiling constraints costs other clients: streams run while others send new schemas, large ones and hostile
// ones, one after the other.
//   node test/load/compile-gaps.mjs [--model DIR] [--streams 4] [--compilers 2] [--seconds 15] [--rounds 2]
// Prints JSON: the time between two tokens of a stream in milliseconds (p50, p99, max), without and with compilations,
// in alternating rounds. This is a benchmark and asserts nothing. The compilers compete for the same cores, so run it on a
// machine with cores to spare, or read p50 as the price of sharing them.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "bundled" },
    streams: { type: "string", default: "4" },
    compilers: { type: "string", default: "2" },
    seconds: { type: "string", default: "15" },
    rounds: { type: "string", default: "2" },
  },
});
const KEY = "gaps";
const data = mkdtempSync(join(tmpdir(), "flywheel-gaps-"));
const server = await startServer();
const post = (body, signal) =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Tell me about the sea." }], ...body }),
  });

let serial = 0;
/** Never the same twice, so that nothing comes from a cache. */
const HEAVY = {
  "300 properties": () => ({ json: wide(300) }),
  "20,000 choices": () => ({ choice: Array.from({ length: 20_000 }, (_, i) => `choice ${serial} number ${i * 7919}`) }),
  "counted regex": () => ({ regex: `x${serial}(?:[a-z]{1,40} ){1,40}(?:\\d{1,30}|[α-ω]{1,200}){1,20}` }),
  "hostile regex": () => ({ regex: `y${serial}(?:(?:a?){200}){200}(?:(?:[ab]{1,300}){1,300}){1,300}` }),
};

try {
  const before = { gaps: [] };
  await round(3, before, 0); // warm
  const quiet = { gaps: [] };
  const busy = { gaps: [], compiled: {}, compileMs: {} };
  for (let i = 0; i < Number(values.rounds); i++) {
    await round(Number(values.seconds), quiet, 0);
    await round(Number(values.seconds), busy, Number(values.compilers));
  }
  const report = {
    model: values.model,
    streams: Number(values.streams),
    cores: availableParallelism(),
    load: loadavg()[0],
    without: summary(quiet.gaps),
    with: summary(busy.gaps),
    compilations: Object.fromEntries(
      Object.entries(busy.compiled).map(([name, count]) => [name, { count, ...summary(busy.compileMs[name]) }]),
    ),
  };
  console.log(JSON.stringify(report, null, 2));
} finally {
  server.child.kill("SIGTERM");
  await new Promise((resolve) => server.child.on("close", resolve));
  rmSync(data, { recursive: true, force: true });
}

async function round(seconds, into, compilers) {
  const until = performance.now() + seconds * 1000;
  await Promise.all([
    ...Array.from({ length: Number(values.streams) }, () => streamUntil(until, into.gaps)),
    ...Array.from({ length: compilers }, (_, i) => compileUntil(until, into, i)),
  ]);
}

/** Runs streams one after the other. Every event after the first of a stream is one gap. */
async function streamUntil(until, gaps) {
  while (performance.now() < until) {
    const response = await post({ stream: true, max_tokens: 200, ignore_eos: true });
    let last = null;
    for await (const _bytes of response.body) {
      const now = performance.now();
      if (last !== null) gaps.push(now - last);
      last = now;
    }
  }
}

async function compileUntil(until, into, offset) {
  const names = Object.keys(HEAVY);
  for (let i = offset; performance.now() < until; i++) {
    const name = names[i % names.length];
    serial++;
    const sent = performance.now();
    const response = await post({ structured_outputs: HEAVY[name](), max_tokens: 1 });
    await response.text();
    const label = `${name} (${response.status})`;
    into.compiled[label] = (into.compiled[label] ?? 0) + 1;
    into.compileMs[label] = [...(into.compileMs[label] ?? []), performance.now() - sent];
  }
}

function wide(count) {
  const properties = {};
  for (let i = 0; i < count; i++) {
    properties[`field ${serial} ${i}`] = {
      type: "object",
      properties: {
        id: { type: "string", pattern: `^[A-Z]{2,${3 + (i % 5)}}-\\d+$` },
        size: { type: "number", minimum: -i, maximum: 1000 + i },
        list: { type: "array", items: { type: "string", maxLength: 40 }, maxItems: 9 },
      },
      required: ["id", "size"],
    };
  }
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function summary(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (q) => Math.round(10 * (sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0)) / 10;
  return { n: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

function startServer() {
  const bin = fileURLToPath(new URL("../../bin/flywheel", import.meta.url));
  const args = [bin, "serve", "--model", values.model, "--port", "0", "--data", data, "--api-key", KEY];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let out = "";
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    child.stdout.on("data", (bytes) => {
      out += bytes;
      const url = /listening on (\S+)/.exec(out)?.[1];
      if (url !== undefined) resolve({ child, url });
    });
  });
}
