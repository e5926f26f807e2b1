// Starts a measured process (child.ts) and calls its object's methods. Each engine has its own process, so that memory,
// threads and crashes stay separate. A call on a dead process rejects with its last lines on stderr.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { type Answer, type Call, CREATE, type Memory } from "./child-messages.ts";

/** Objects whose methods all return promises. */
type Callable<T> = { [K in keyof T]: (...args: never[]) => Promise<unknown> };

export interface Remote<T> {
  object: T;
  /** Memory of the process at its last answer. */
  memory(): Memory;
  stop(): Promise<void>;
}

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

const STDERR_KEPT = 2000;

export async function startRemote<T extends Callable<T>>(module: URL, options: unknown): Promise<Remote<T>> {
  const entry = new URL("./child.js", import.meta.url);
  const child = fork(entry, [module.href], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    serialization: "advanced",
    // Turns off ONNX Runtime's telemetry.
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1" },
  });
  const pending = new Map<number, Pending>();
  let memory: Memory = { residentBytes: 0, peakBytes: 0 };
  let lastId = 0;
  let stderr = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT);
  });
  child.on("message", (answer: Answer) => {
    const call = pending.get(answer.id)!;
    pending.delete(answer.id);
    memory = answer.memory;
    if (answer.ok) call.resolve(answer.value);
    else call.reject(new Error(answer.error));
  });
  child.on("exit", (code, signal) => {
    const reason = new Error(`the process ended (${signal ?? `exit code ${code}`})\n${stderr}`.trimEnd());
    for (const call of pending.values()) call.reject(reason);
    pending.clear();
  });
  const call = (method: string, ...args: unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null || !child.connected) {
        reject(new Error(`the process is gone\n${stderr}`.trimEnd()));
        return;
      }
      lastId += 1;
      pending.set(lastId, { resolve, reject });
      child.send({ id: lastId, method, args } satisfies Call);
    });
  try {
    await call(CREATE, options);
  } catch (error) {
    await end(child);
    throw error;
  }
  const object = new Proxy({} as T, {
    get:
      (_, method) =>
      (...args: unknown[]) =>
        call(String(method), ...args),
  });
  return { object, memory: () => memory, stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
