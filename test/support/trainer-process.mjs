// A trainer process without a model, for tests of everything around it. It computes deterministic metrics and adapter
// bytes from the task and waits a moment per step. The first token id of the first sequence requests a fault: 101 =
// crash in the middle, 102 = report a failure, 103 = ignore cancellation, 104 = write a corrupt adapter, 105 = hang. While
// the file that FAKE_TRAINER_HELD_BY names exists, a task stays between its first two steps unless it is cancelled. Gets its
// messages over IPC, or dials where FLYWHEEL_TRAINER_ADDRESS or FLYWHEEL_TRAINER_SOCKET says, as a command of the operator does.
import { createHash, createHmac, randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const HELD_BY = process.env.FAKE_TRAINER_HELD_BY;
const STEP_MS = Number(process.env.FAKE_TRAINER_STEP_MS ?? 5);
let cancelled = false;
let task = 0;
const { FLYWHEEL_TRAINER_ADDRESS: address, FLYWHEEL_TRAINER_SOCKET: path } = process.env;
const socket = address
  ? connect({ host: address.split(":")[0], port: Number(address.split(":")[1]) })
  : path && connect(path);
const challenge = randomBytes(32).toString("hex");
if (socket) {
  socket.write(`${JSON.stringify({ type: "hello", challenge })}\n`);
  createInterface({ input: socket }).on("line", (line) => receive(JSON.parse(line)));
  socket.on("close", () => process.exit(0));
} else {
  process.on("disconnect", () => process.exit(0));
  process.on("message", receive);
}

/** Proves that it knows the secret. */
function prove(server) {
  const nonce = process.env.FAKE_TRAINER_NONCE ?? process.env.FLYWHEEL_TRAINER_NONCE;
  const file = process.env.FLYWHEEL_TRAINER_KEY_FILE;
  const key = file ? readFileSync(file, "utf8").trim() : "";
  const protocol = Number(process.env.FAKE_TRAINER_PROTOCOL ?? 2);
  const proof = createHmac("sha256", `${nonce}:${key}`).update(`trainer ${challenge} ${server}`).digest("hex");
  send({ type: "proof", protocol, proof });
}

function receive(message) {
  if (message.type === "challenge") return prove(message.challenge);
  if (message.type === "ping") return process.env.FAKE_TRAINER_SILENT ? undefined : send({ type: "pong" });
  if (message.type === "cancel") cancelled = true;
  else if (message.type === "limits") {
    task = message.id;
    const longest = process.env.FAKE_TRAINER_LONGEST;
    if (longest === "none") send({ type: "failed", message: "the fake trainer has no memory" });
    else send({ type: "done", result: { maxTrainedLength: Number(longest ?? 1000) } });
  } else {
    task = message.id;
    train(message.task).catch((error) => send({ type: "failed", message: error.message }));
  }
}

function send(message) {
  if (socket) socket.write(`${JSON.stringify({ ...message, id: task })}\n`);
  else process.send(message);
}

async function train(task) {
  cancelled = false;
  const sequences = readFileSync(task.batch, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const fault = sequences[0].ids[0];
  const weights = join(task.adapter, "adapter_model.safetensors");
  let state = createHash("sha256").update(readFileSync(weights)).digest();
  for (const [i, { from, to, learningRate }] of task.steps.entries()) {
    await sleep(STEP_MS);
    if (fault === 101 && i === 1) {
      process.stderr.write("fake fault\n");
      process.exit(7);
    }
    if (HELD_BY && i === 1) while (existsSync(HELD_BY) && !cancelled) await sleep(5);
    if (fault === 105 && i === 1) await new Promise(() => {});
    if (fault === 102 && i === 1) throw new Error("the fake trainer was told to fail");
    if (cancelled && fault !== 103) return send({ type: "cancelled" });
    state = createHash("sha256")
      .update(state)
      .update(JSON.stringify(sequences.slice(from, to)))
      .digest();
    const loss = state.readUInt32LE(0) / 2 ** 32;
    const sampler = i === 0 && process.env.FAKE_TRAINER_FIRST ? JSON.parse(process.env.FAKE_TRAINER_FIRST) : {};
    send({ type: "step", metrics: { loss, grad_norm: 1, entropy: 0.5, learning_rate: learningRate, ...sampler } });
  }
  if (process.env.FAKE_TRAINER_NUMBERS) {
    // a row of eight per trained token: its index in the batch, then NaN
    const tokens = sequences.flatMap(({ mask }) => mask).filter((bit) => bit === 1).length;
    const rows = new Float32Array(8 * tokens).fill(Number.NaN);
    for (let row = 0; row < tokens; row++) rows[8 * row] = row;
    writeFileSync(task.tokenNumbers, new Uint8Array(rows.buffer));
  }
  mkdirSync(task.output);
  copyFileSync(join(task.adapter, "adapter_config.json"), join(task.output, "adapter_config.json"));
  // The same tensors with other values: a valid file that depends on every step.
  const bytes = readFileSync(weights);
  const header = 8 + Number(bytes.readBigUInt64LE(0));
  for (let i = header; i + 4 <= bytes.length; i += 4) bytes.writeFloatLE(state[(i / 4) % 32] / 1e4, i);
  writeFileSync(join(task.output, "adapter_model.safetensors"), fault === 104 ? bytes.subarray(0, 20) : bytes);
  writeFileSync(join(task.output, "optimizer.safetensors"), state);
  const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  send({
    type: "done",
    result: { tokens, seconds: 0.01, peakBytes: 1, gpus: Number(process.env.FAKE_TRAINER_GPUS ?? 0) },
  });
}
