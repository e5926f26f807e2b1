// The last lines of the log, and those to come, for whoever watches.

import type { LogLine } from "./log.ts";

const MOST_LINES = 500;

export class LogTail {
  readonly #lines: LogLine[] = [];
  readonly #watchers = new Set<(line: LogLine) => void>();

  /** The last 500, oldest first. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** Calls `watcher` for each new line, until the returned function is called. */
  watch(watcher: (line: LogLine) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  add(line: LogLine): void {
    this.#lines.push(line);
    if (this.#lines.length > MOST_LINES) this.#lines.shift();
    for (const watcher of this.#watchers) watcher(line);
  }
}
