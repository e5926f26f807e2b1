// `npm run test:vllm -- --url URL --model DIR`: asks a vLLM server directly and through a Flywheel server in front of it, and
// counts where the replies differ. DIR is the checkpoint that vLLM serves, and `flywheel doctor` examines vLLM first. A
// difference that differences.ts explains is listed with its reason. Any other one is a failure, and so is the doctor's "wrong".
// At the end a policy is trained with vLLM's replies.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Judgement, judge } from "../conformance/compare.ts";
import { type Recording, readRecordings, replay } from "../conformance/recording.ts";
import { startFlywheel } from "../conformance/start-flywheel.ts";
import { loadAdapters, type Server, underAdapters, unloadAdapters } from "./adapters.ts";
import { reasonFor } from "./differences.ts";
import { readFacts } from "./model-facts.ts";
import { type Exchange, requests } from "./requests.ts";
import { trainOn } from "./training.ts";

const TOKEN = "test-vllm";
/** Requests that are also sent under adapters. */
const ADAPTED =
  /^(chat greedy|chat sampled|chat several choices|chat stream|chat structured json|completion of token ids)$/;

const { values } = parseArgs({
  options: {
    url: { type: "string" },
    model: { type: "string" },
    "api-key": { type: "string", default: "" },
    data: { type: "string" },
    recordings: { type: "string" },
    only: { type: "string", default: "" },
  },
});
if (values.url === undefined || values.model === undefined) {
  console.error(
    "usage: npm run test:vllm -- --url URL --model DIR [--api-key KEY] [--data DIR] [--recordings FILE] [--only TEXT]",
  );
  process.exit(2);
}
const vllm: Server = { url: values.url.replace(/\/+$/, "").replace(/\/v1$/, ""), token: values["api-key"] };
const data = values.data ?? mkdtempSync(join(tmpdir(), "flywheel-vllm-"));
let failures = (await doctor()) ? 0 : 1;
const { served, facts } = await readFacts(vllm.url, vllm.token, values.model);
const flywheel = await startFlywheel(TOKEN, [
  ...["--engine-url", vllm.url, "--engine-api-key", vllm.token || "none", "--model", values.model, "--data", data],
  ...["--served-model-name", served, "--reasoning-parser", "none"],
]);
try {
  await compareAll();
  const problems = await trainOn({ url: flywheel.url, token: TOKEN }, served);
  for (const problem of problems) console.log(`training: ${problem}`);
  failures += problems.length;
} finally {
  await flywheel.stop();
  if (values.data === undefined) rmSync(data, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

/** False if the doctor finds something wrong. */
async function doctor(): Promise<boolean> {
  const flags = ["--engine-url", vllm.url, "--model", values.model!, "--data", data, "--max-model-len", "2"];
  const env = { ...process.env, ...(vllm.token === "" ? {} : { FLYWHEEL_ENGINE_API_KEY: vllm.token }) };
  const child = spawn(process.execPath, ["bin/flywheel", "doctor", ...flags], { stdio: "inherit", env });
  return (await new Promise((resolve) => child.once("exit", resolve))) === 0;
}

async function compareAll(): Promise<void> {
  const plain = requests(facts);
  const servers = [vllm, { url: flywheel.url, token: TOKEN }];
  await loadAdapters(servers, values.model!, data);
  try {
    await compare([...plain, ...underAdapters(plain.filter(({ name }) => ADAPTED.test(name)))].map(asRecording));
  } finally {
    await unloadAdapters(servers);
  }
}

async function compare(written: readonly Recording[]): Promise<void> {
  const recorded = values.recordings === undefined ? [] : readRecordings(values.recordings).filter(isReplayable);
  const chosen = [...written, ...recorded].filter(({ name }) => name.includes(values.only));
  const counts = { same: 0, explained: 0, different: 0 };
  for (const recording of chosen) {
    const theirs = await replay(recording, vllm.url, vllm.token);
    const judgement = judge(await replay(recording, flywheel.url, TOKEN), theirs);
    counts[classOf(recording.name, judgement)] += 1;
  }
  console.log(`\n${chosen.length} requests to vLLM directly and through Flywheel`);
  for (const [verdict, count] of Object.entries(counts)) console.log(`${String(count).padStart(5)}  ${verdict}`);
  failures += counts.different;
}

function classOf(name: string, { verdict, differences }: Judgement): "same" | "explained" | "different" {
  if (verdict === "same") return "same";
  const reason = reasonFor(name, differences);
  console.log(`${name}: ${reason ?? verdict}`);
  if (reason !== null) return "explained";
  for (const difference of differences.slice(0, 5)) console.log(`  ${difference.replace("recorded", "vLLM")}`);
  if (differences.length > 5) console.log(`  and ${differences.length - 5} more`);
  return "different";
}

function asRecording({ name, path, body }: Exchange): Recording {
  const text = JSON.stringify({ model: served, ...body });
  return { name, method: "POST", path, headers: {}, text, reply: { status: 200 } };
}

/** Adapters and access are not part of a checkpoint. */
function isReplayable({ name, reply }: Recording): boolean {
  return !name.startsWith("lora/") && reply.status !== 401;
}
