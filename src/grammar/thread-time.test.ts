import { Worker } from "node:worker_threads";
import { expect } from "vitest";
import { LINUX, needing } from "../../test/needs.ts";
import { compiledEntry } from "../system/package.ts";
import { threadCpuMs } from "./thread-time.ts";

const script = (url: string) => `
  const { parentPort } = require("node:worker_threads");
  import(${JSON.stringify(url)}).then(({ yieldToOthers }) => {
    const thread = yieldToOthers();
    parentPort.postMessage({ thread, priority: thread === null ? null : require("node:os").getPriority(thread) });
    parentPort.on("message", () => {
      let x = 0;
      for (let i = 0; i < 1e8; i++) x += Math.sqrt(i);
      parentPort.postMessage(x);
    });
  });`;

needing(LINUX).it("a thread lowers its priority and reports only its own CPU time", async () => {
  const worker = new Worker(script(compiledEntry(import.meta.url, "./thread-time.ts").href), { eval: true });
  const next = () => new Promise<{ thread: number; priority: number }>((resolve) => worker.once("message", resolve));
  const { thread, priority } = await next();
  expect(priority).toBe(10);
  const before = threadCpuMs(thread)!;
  worker.postMessage("work");
  await next();
  expect(threadCpuMs(thread)! - before).toBeGreaterThan(0);
  await worker.terminate();
  expect(threadCpuMs(thread)).toBeNull();
  expect(threadCpuMs(null)).toBeNull();
});
