// Entry of a measured process. It calls `create` of the module in argv and answers calls of the object's methods one by one.
// Every answer includes the memory that the process holds.

import { type Answer, type Call, CREATE } from "./child-messages.ts";
import { memory } from "./stopwatch.ts";

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

const [moduleUrl] = process.argv.slice(2);
if (process.send === undefined || moduleUrl === undefined) throw new Error("bench/child is started by the benchmark");

let methods: Methods = {};
let queue: Promise<void> = Promise.resolve();

async function run(method: string, args: unknown[]): Promise<unknown> {
  if (method !== CREATE) return methods[method]!(...args);
  const { create } = (await import(moduleUrl!)) as { create: (options: unknown) => Promise<Methods> };
  methods = await create(args[0]);
  return null;
}

async function answer({ id, method, args }: Call): Promise<Answer> {
  try {
    const value = await run(method, args);
    return { id, memory: memory(), ok: true, value };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { id, memory: memory(), ok: false, error: text };
  }
}

process.on("message", (call: Call) => {
  queue = queue.then(async () => {
    process.send!(await answer(call));
  });
});
process.on("disconnect", () => process.exit(0));
