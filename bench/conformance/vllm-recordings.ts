// `npm run conformance:vllm -- --recordings FILE --model DIR`: replays requests that were recorded with a real vLLM against
// this server on the same checkpoint, and counts where the replies agree. DIR is the checkpoint, FILE has one exchange per
// line. `--only TEXT` takes the recordings whose name contains it; `--all` shows differences in wording too.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { judge, VERDICTS, type Verdict } from "./compare.ts";
import { readRecordings, replay } from "./recording.ts";
import { startFlywheel } from "./start-flywheel.ts";

const TOKEN = "conformance";

const { values } = parseArgs({
  options: {
    recordings: { type: "string" },
    model: { type: "string" },
    name: { type: "string", default: "minimind" },
    "max-model-len": { type: "string", default: "2048" },
    only: { type: "string", default: "" },
    all: { type: "boolean", default: false },
  },
});
if (values.recordings === undefined || values.model === undefined) {
  console.error("usage: npm run conformance:vllm -- --recordings FILE --model DIR [--only TEXT] [--all]");
  process.exit(2);
}

// Adapters are not part of a checkpoint: recordings with them cannot be replayed.
const chosen = readRecordings(values.recordings).filter(
  ({ name }) => name.includes(values.only) && !name.startsWith("lora/"),
);
const data = mkdtempSync(join(tmpdir(), "flywheel-conformance-"));
const server = await startFlywheel(TOKEN, [
  ...["--model", values.model, "--served-model-name", values.name, "--max-model-len", values["max-model-len"]],
  // As the recorded server ran: no reasoning parser, and blocks of 128 tokens in its prefix cache.
  ...["--reasoning-parser", "none", "--block-size", "128", "--dtype", "float32", "--data", data],
]);
try {
  const counts = new Map<Verdict, number>(VERDICTS.map((verdict) => [verdict, 0]));
  for (const recording of chosen) {
    const { verdict, differences } = judge(await replay(recording, server.url, TOKEN), recording.reply);
    counts.set(verdict, counts.get(verdict)! + 1);
    if (verdict === "same" || (verdict === "wording of an error" && !values.all)) continue;
    console.log(`${recording.name}: ${verdict}`);
    for (const difference of differences.slice(0, 5)) console.log(`  ${difference}`);
    if (differences.length > 5) console.log(`  and ${differences.length - 5} more`);
  }
  console.log(`\n${chosen.length} requests`);
  for (const [verdict, count] of counts) console.log(`${String(count).padStart(5)}  ${verdict}`);
} finally {
  await server.stop();
  rmSync(data, { recursive: true, force: true });
}
