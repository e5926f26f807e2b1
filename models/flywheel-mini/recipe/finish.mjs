// The last stage, run by the service itself: a supervised training job on MODEL in float32, whose adapter is then added to the
// weights.
//   node finish.mjs MODEL EXAMPLES.jsonl OUT [RATE]     after `npm run build` and `npx tsc -p models/flywheel-mini/recipe`
// `make-chat.js --finish N` writes EXAMPLES. OUT receives model.safetensors and finish-log.jsonl.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FlywheelClient } from "../../../dist/client/client.js";
import { openCheckpoint } from "../../../dist/model/checkpoint/checkpoint.js";
import { modulePath } from "../../../dist/model/checkpoint/expected-tensors.js";
import { writeSafetensors } from "../../../dist/model/checkpoint/safetensors-writer.js";
import { eachPair } from "../../../dist/model/lora/lora-adapter.js";
import { loadPeft } from "../../../dist/model/lora/peft.js";
import { serveModel } from "./dist/serve-process.js";

const BATCH = 16;
const [folder, file, out, rate = "3e-4"] = process.argv.slice(2);
if (out === undefined) throw new Error("usage: node finish.mjs MODEL EXAMPLES.jsonl OUT [RATE]");
const examples = readFileSync(file, "utf8").trim().split("\n").map(JSON.parse);
mkdirSync(out, { recursive: true });

const server = await serveModel(folder, ["--dtype", "float32", "--lora-rank", "32", "--lora-alpha", "64"]);
try {
  merge(join(server.data, "training", "models", await train(), "step-1"));
} finally {
  await server.stop();
}

/** Runs the job and returns the id of the trained model. */
async function train() {
  const client = new FlywheelClient({ baseUrl: server.baseUrl, apiKey: server.apiKey });
  const [base] = await client.baseModels();
  const model = await client.register({ project: "recipe", name: "finish", base_model: base });
  const steps = Math.ceil(examples.length / BATCH);
  // Warm-up over 20 steps, then linear decay to 0.
  const rates = Array.from({ length: steps }, (_, i) => Number(rate) * Math.min((i + 1) / 20, 1 - i / steps));
  const config = { batch_size: BATCH, learning_rate: rates };
  const job = await client.submitExamples(model.id, examples, { config });
  const log = stepLog(join(out, "finish-log.jsonl"));
  for await (const event of client.events(job.id)) if (event.type === "gradient_step") log(event.data);
  const { status, error_message: reason } = await client.job(job.id);
  if (status !== "COMPLETED") throw new Error(`the job ended as ${status}: ${reason}`);
  return model.id;
}

/** Writes a line for every ten steps: their mean loss and all tokens so far, including prompts. */
function stepLog(path) {
  writeFileSync(path, "");
  let [losses, tokens] = [[], 0];
  return (step) => {
    losses.push(step.loss);
    tokens += step.num_tokens;
    if (losses.length < 10) return;
    const loss = losses.reduce((sum, each) => sum + each, 0) / losses.length;
    const line = { step: step.gradient_step, loss: Number(loss.toFixed(4)), rate: step.learning_rate, tokens };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
    losses = [];
  };
}

/** W + scale * B A for every adapted map, stored as bfloat16 like the rest. */
function merge(adapterFolder) {
  const checkpoint = openCheckpoint(folder);
  const adapter = loadPeft(adapterFolder, checkpoint.config);
  const changes = new Map();
  for (const { layer, name, pair } of eachPair(adapter.layers)) {
    changes.set(`model.layers.${layer}.${modulePath(name)}.weight`, pair);
  }
  const tensors = checkpoint.names.map((name) => {
    const { shape, ...tensor } = checkpoint.tensor(name);
    const values = tensor.read();
    const pair = changes.get(name);
    if (pair !== undefined) addProduct(values, pair, adapter.rank, adapter.scale);
    return { name, shape, values, dtype: "BF16" };
  });
  checkpoint.close();
  writeSafetensors(join(out, "model.safetensors"), tensors, { format: "pt" });
  console.log(`merged ${changes.size} maps into ${join(out, "model.safetensors")}`);
}

/** values [out, in] += scale * b [out, rank] a [rank, in] */
function addProduct(values, { a, b }, rank, scale) {
  const inputs = a.length / rank;
  for (let row = 0; row < b.length / rank; row++) {
    for (let r = 0; r < rank; r++) {
      const factor = scale * b[row * rank + r];
      for (let i = 0; i < inputs; i++) values[row * inputs + i] += factor * a[r * inputs + i];
    }
  }
}
