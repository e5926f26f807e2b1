// The parent process of a PostgreSQL server that a test started. It makes the folder of the server, starts and ends the
// server when it is told, and removes both when the test process goes away, however that happens.
//
// In:  { do: "start" } · { do: "end", signal: "SIGINT" | "SIGQUIT" | "SIGKILL" }
// Out: { folder } once · { done: true } or { failed: text } for every order

import { execFileSync, spawn } from "node:child_process";
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const { base, programs, copy, template, owner, password, settings } = JSON.parse(process.argv[2]);
const account = owner ?? {};

/** Short: the path of a socket has at most 107 bytes. */
const folder = mkdtempSync(join(base, "fw-pg-"));
const data = join(folder, "data");
const bin = join(copy ? join(folder, "programs") : programs, "bin");
let server = null;
let log = "";

/** Nobody may be left to hear it. */
function tell(message) {
  if (process.connected) process.send(message, () => {});
}

function initialise() {
  const secret = join(folder, "password");
  writeFileSync(secret, password);
  for (const path of owner === null ? [] : [folder, secret]) chownSync(path, owner.uid, owner.gid);
  if (copy) cpSync(programs, join(folder, "programs"), { recursive: true, verbatimSymlinks: true });
  if (template !== null && existsSync(template)) {
    run("cp", ["-Rp", template, data]);
    return;
  }
  initialiseData(secret);
  if (template !== null) shareData();
}

function initialiseData(secret) {
  const access = ["--auth-local=trust", "--auth-host=scram-sha-256", `--pwfile=${secret}`];
  // Words sort as in English unless a column says otherwise: a query that relies on the order of bytes shows.
  const text = ["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US"];
  const args = ["-D", data, "-U", "flywheel", ...access, ...text, "--wal-segsize=1", "--no-sync", "--no-instructions"];
  run(join(bin, "initdb"), args);
}

/** Several servers may come here at once. The first one wins. */
function shareData() {
  const draft = join(folder, "template");
  run("cp", ["-Rp", data, draft]);
  try {
    renameSync(draft, template);
  } catch (error) {
    if (!existsSync(template)) throw error;
  }
}

function run(program, args) {
  execFileSync(program, args, { ...account, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
}

/** One attempt: resolves with null when the server accepts connections, or with what it said when it ended. */
function launch() {
  log = "";
  const flags = Object.entries({ ...settings, unix_socket_directories: folder }).flatMap(([k, v]) => [
    "-c",
    `${k}=${v}`,
  ]);
  const child = spawn(join(bin, "postgres"), ["-D", data, ...flags], {
    ...account,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  server = { child, ended: new Promise((resolve) => child.once("close", resolve)) };
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve(log));
    child.stderr.on("data", (bytes) => {
      log = (log + bytes).slice(-20_000);
      if (log.includes("ready to accept connections")) resolve(null);
    });
  });
}

async function start() {
  for (const until = Date.now() + 30_000; ; await sleep(50)) {
    const failure = await launch();
    if (failure === null) return;
    // Processes of a killed server hold its memory until they notice.
    const passing = failure.includes("is still in use") && Date.now() < until && process.connected;
    if (!passing) throw new Error(`postgres ended: ${failure}`);
  }
}

async function end(signal) {
  server?.child.kill(signal);
  await server?.ended;
  server = null;
}

/** A killed server leaves a shared memory segment behind, which its lock file names. */
function removeMemory() {
  let lock;
  try {
    lock = readFileSync(join(data, "postmaster.pid"), "utf8");
  } catch {
    return; // It ended in order.
  }
  const segment = lock.split("\n")[6]?.trim().split(/\s+/)[1];
  if (segment !== undefined) execFileSync("ipcrm", ["-m", segment]);
}

const orders = { start, end: ({ signal }) => end(signal) };

process.on("message", async (order) => {
  try {
    await orders[order.do](order);
    tell({ done: true });
  } catch (error) {
    tell({ failed: `${error.message}\n${error.stderr ?? ""}` });
  }
});

process.on("disconnect", async () => {
  const impatience = setTimeout(() => server?.child.kill("SIGKILL"), 10_000);
  await end("SIGQUIT");
  clearTimeout(impatience);
  try {
    removeMemory();
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  process.exit();
});

try {
  initialise();
  tell({ folder });
} catch (error) {
  tell({ failed: `${error.message}\n${error.stderr ?? ""}` });
}
