// Entry of the grammar worker: one constraint at a time in, its key or the reason against it out. Nothing else runs here,
// so the service can end the thread at any moment. It gives way to every other thread: nobody waits for somebody else's
// schema.

import { parentPort } from "node:worker_threads";
import { compileConstraint } from "./compile.ts";
import type { ConstrainedOutput } from "./constraint.ts";
import { GrammarError } from "./grammar-error.ts";
import { grammarKey } from "./match/constraint-factory.ts";
import { yieldToOthers } from "./thread-time.ts";

export interface CompileJob {
  id: number;
  /** A ConstrainedOutput as JSON text: structured clone would recurse on deep input. */
  constraint: string;
}

export type CompileResult =
  /** Sent once, when the thread has loaded. `thread`: see thread-time.ts. */
  | { ready: true; thread: number | null }
  /** `ignored`: schema keywords that no draft knows. */
  | { id: number; key: string; ignored: readonly string[] }
  /** `late`: refused for the time it took, which another attempt may not take. */
  | { id: number; refused: string; late?: true }
  /** A fault of ours, not the sender's. */
  | { id: number; fault: string };

/** A longer key would make every request that uses it slow to hand over. */
const MAX_KEY_LENGTH = 4 * 2 ** 20;

/** Keywords are the sender's text: a log line holds a few of them, and the beginning of each. */
const MAX_IGNORED = 20;
const MAX_SHOWN = 40;

if (parentPort === null) throw new Error("grammar/compile-worker is the entry of a worker thread, not a program");
const port = parentPort;
port.on("message", (job: CompileJob) => port.postMessage(compile(job)));
port.postMessage({ ready: true, thread: yieldToOthers() });

function compile({ id, constraint }: CompileJob): CompileResult {
  try {
    const ignored = new Set<string>();
    const program = compileConstraint(JSON.parse(constraint) as ConstrainedOutput, (keywords) => {
      for (const keyword of keywords) ignored.add(keyword.slice(0, MAX_SHOWN));
    });
    const key = grammarKey(program);
    if (key.length > MAX_KEY_LENGTH)
      return { id, refused: "the constraint is too large; use fewer alternatives or smaller counts" };
    return { id, key, ignored: [...ignored].slice(0, MAX_IGNORED) };
  } catch (error) {
    if (error instanceof GrammarError) return { id, refused: error.message };
    return { id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
