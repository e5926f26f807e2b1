// Entry of the grammar worker. It takes one constraint at a time and returns its key or the reason for refusing it.
// Nothing else runs here, so the service can terminate the thread at any moment. It yields to every other thread: no
// request should wait for somebody else's schema.

import { parentPort } from "node:worker_threads";
import { compileConstraint } from "./compile.ts";
import { yieldToOthers } from "./compile-effort.ts";
import type { ConstrainedOutput } from "./constraint.ts";
import { GrammarError } from "./grammar-error.ts";
import { grammarKey } from "./match/constraint-factory.ts";

export interface CompileJob {
  id: number;
  /** A ConstrainedOutput as JSON text, because structured clone would recurse on deep input. */
  constraint: string;
}

export type CompileResult =
  /** Sent once, when the thread has loaded. See compile-effort.ts for `thread`. */
  | { ready: true; thread: number | null }
  /** `ignored` lists schema keywords that no draft defines. */
  | { id: number; key: string; ignored: readonly string[] }
  /** `late`: refused because it took too long. Another attempt may succeed. */
  | { id: number; refused: string; late?: true }
  /** An internal fault; the constraint is not to blame. */
  | { id: number; fault: string };

/** Handing over a longer key would slow down every request that uses it. */
const MAX_KEY_LENGTH = 4 * 2 ** 20;

/** Keywords are user text, so a log line shows only a few of them and the start of each. */
const MAX_IGNORED = 20;
const MAX_SHOWN = 40;

if (parentPort === null) throw new Error("grammar/compile-worker must be started as a worker thread");
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
    if (key.length > MAX_KEY_LENGTH) {
      return { id, refused: "the constraint is too large; use fewer alternatives or smaller counts" };
    }
    return { id, key, ignored: [...ignored].slice(0, MAX_IGNORED) };
  } catch (error) {
    if (error instanceof GrammarError) return { id, refused: error.message };
    return { id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
