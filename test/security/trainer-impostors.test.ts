// Listens on the way between the server and a trainer on another machine, and then plays one of them.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { createTrainer } from "../../src/app/trainer.ts";
import { loadConfig } from "../../src/config/load.ts";
import { linesOf } from "../../src/json/json.ts";
import { createLog } from "../../src/observe/log.ts";
import { CommandProcess, proofOf } from "../../src/training/process/command-process.ts";
import { needing, TORCH } from "../support/needs.ts";

const FAKE = fileURLToPath(new URL("../support/trainer-process.mjs", import.meta.url));
const KEY = "k".repeat(32);
const CHALLENGE = "a".repeat(64);
const folder = mkdtempSync(join(tmpdir(), "flywheel-impostors-"));
const file = join(folder, "key");
writeFileSync(file, `${KEY}\n`);

let process_: CommandProcess;
afterEach(() => process_?.kill());

/** A server that waits for a trainer over TCP, whose command writes down its environment and does nothing. */
async function listening(command = `sh -c 'env > ${folder}/environment; exec sleep 60'`) {
  const options = { env: {}, startMs: 60_000, pingMs: 20, address: { host: "127.0.0.1", port: 0 } };
  process_ = new CommandProcess({ ...options, command, key: { file, text: KEY } });
  return process_;
}

async function environmentOf(name: string): Promise<string> {
  const read = () => {
    try {
      return new RegExp(`^${name}=(.*)$`, "m").exec(readFileSync(join(folder, "environment"), "utf8"))?.[1];
    } catch {
      return undefined; // not written yet
    }
  };
  await expect.poll(read).toBeDefined();
  return read()!;
}

/** What the server answers to these lines; each may depend on the line before. */
async function talk(
  port: number,
  ...lines: ((said: { challenge: string; proof: string }) => object)[]
): Promise<string[]> {
  const socket: Socket = connect(port, "127.0.0.1");
  const heard: string[] = [];
  const send = (index: number) => socket.write(`${JSON.stringify(lines[index]!(JSON.parse(heard.at(-1) ?? "{}")))}\n`);
  send(0);
  for await (const line of linesOf(socket.setEncoding("utf8"))) {
    heard.push(line);
    if (heard.length === lines.length) break;
    send(heard.length);
  }
  return heard;
}

it("answers only who knows the key, and never sends a secret", async () => {
  await listening();
  const port = Number((await environmentOf("FLYWHEEL_TRAINER_ADDRESS")).split(":")[1]);
  const nonce = await environmentOf("FLYWHEEL_TRAINER_NONCE");
  const hello = () => ({ type: "hello", challenge: CHALLENGE });
  const proof = (text: string) => ({ type: "proof", protocol: 2, proof: text });
  const ours = (secret: string) => (said: { challenge: string }) =>
    proof(proofOf(secret, "trainer", { trainer: CHALLENGE, server: said.challenge }));
  const replayed: string[] = [];
  for (const lines of [
    [() => ({ type: "hello", protocol: 1, nonce })], // the nonce alone
    [() => ({ type: "hello", challenge: "" })],
    [hello, () => proof("")],
    [hello, (said: { proof: string }) => proof(said.proof)], // the server's own
    [hello, ours(`${nonce}:`)], // from the environment of the launcher, without the key
    [hello, ours(`:${KEY}`)],
  ]) {
    const heard = await talk(port, ...lines);
    expect(heard.length).toBeLessThanOrEqual(1); // its challenge at most
    replayed.push(...heard);
  }
  expect(replayed.join("")).not.toContain(nonce);
  expect(replayed.join("")).not.toContain(KEY);
  expect(process_.ended).toBeNull();
  const known = await talk(port, hello, ours(`${nonce}:${KEY}`));
  expect(known[1]).toBe('{"type":"ping"}');
});

const PYTHON = process.env.FLYWHEEL_TORCH_PYTHON;

needing(TORCH).it("is nobody to a trainer without the key", async () => {
  const heard: string[] = [];
  const impostor = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      heard.push(bytes.toString());
      socket.write(`${JSON.stringify({ type: "challenge", challenge: CHALLENGE, proof: CHALLENGE })}\n`);
    });
  });
  await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(impostor.address() as AddressInfo).port}`;
  const script = `from flywheel_trainer.channel import Channel; Channel("${address}").start("secret", {})`;
  const env = { ...process.env, PYTHONPATH: fileURLToPath(new URL("../../trainer", import.meta.url)) };
  const said = await new Promise<string>((resolve) => {
    execFile(PYTHON!, ["-c", script], { env }, (_error, _out, stderr) => resolve(stderr));
  });
  expect(said).toContain("does not know the key");
  expect(heard).toHaveLength(1);
  await new Promise((resolve) => impostor.close(resolve));
});

it("works over TCP with the key", async () => {
  await listening(`"${process.execPath}" "${FAKE}"`);
  const done = new Promise((resolve) => {
    process_.onMessage = resolve;
  });
  process_.send({ type: "limits", task: {} } as never);
  await done;
});

it.each(["10.0.0.5", "0.0.0.0", "trainer.example", "[::]"])("cannot be invited to %s without a key", (address) => {
  const create = (flags: object) =>
    createTrainer(
      loadConfig({ env: {}, flags: { trainer: "torch", trainerAddress: address, ...flags } }),
      createLog({ level: "error", format: "text" }),
    );
  expect(() => create({})).toThrow(/--trainer-key-file|is not HOST/);
  const short = join(folder, "short");
  writeFileSync(short, "x");
  expect(() => create({ trainerKeyFile: short })).toThrow(/32 characters|is not HOST/);
});
