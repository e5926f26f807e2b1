// One engine with one vocabulary, in a process that is replaced when a schema takes too long or crashes it.

import { type Remote, startRemote } from "../process/remote.ts";
import type { EngineName, EngineOptions, GrammarEngine, Job, Verdict } from "./engine.ts";

const MODULES: Readonly<Record<EngineName, string>> = { flywheel: "./flywheel.js", xgrammar: "./xgrammar.js" };

export class Contestant {
  readonly engine: EngineName;
  readonly options: EngineOptions;
  readonly #limitSeconds: number;
  #remote: Remote<GrammarEngine> | null = null;

  constructor(engine: EngineName, options: EngineOptions, limitSeconds: number) {
    this.engine = engine;
    this.options = options;
    this.#limitSeconds = limitSeconds;
  }

  async measure(job: Job): Promise<Verdict> {
    this.#remote ??= await startRemote<GrammarEngine>(new URL(MODULES[this.engine], import.meta.url), this.options);
    const { object } = this.#remote;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), this.#limitSeconds * 1000);
    });
    try {
      const verdict = await Promise.race([object.measure(job), late]);
      if (verdict !== null) return verdict;
      await this.stop();
      const compileMs = this.#limitSeconds * 1000;
      return { compiled: false, compileMs, reason: `over the limit of ${this.#limitSeconds} seconds` };
    } catch (error) {
      await this.stop();
      return { compiled: false, compileMs: 0, reason: `crash: ${lastLine((error as Error).message)}` };
    } finally {
      clearTimeout(timer);
    }
  }

  async stop(): Promise<void> {
    await this.#remote?.stop();
    this.#remote = null;
  }
}

/** The line of a crash that says most. */
function lastLine(message: string): string {
  const lines = message.split("\n").filter((line) => line.trim() !== "" && !/^\s+at |^Node\.js v/.test(line));
  return (lines.find((line) => /error|check failed|abort/i.test(line)) ?? lines[0] ?? "").trim().slice(0, 200);
}
