// Shows downloads. On a terminal: one line per file, redrawn in place, with a bar, bytes and rate. In a log: one line
// for each tenth of a file.

import { bytesText } from "../../system/text.ts";
import type { DownloadProgress } from "./hub.ts";

export interface ProgressOutput {
  readonly columns?: number;
  write(text: string): unknown;
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/** A callback for HubOptions.onProgress. Calls `report` for each tenth of a file, and always for the last. */
export function createProgressLines(
  report: (line: { file: string; percent: number }) => void,
): (at: DownloadProgress) => void {
  let told = { file: "", percent: -1 };
  return ({ file, done, total }) => {
    const percent = total === 0 ? 100 : 10 * Math.floor((10 * done) / total);
    if (file === told.file && percent === told.percent) return;
    told = { file, percent };
    report(told);
  };
}

/** A callback for HubOptions.onProgress, for a terminal. `now` is in milliseconds. */
export function createProgressBar(
  output: ProgressOutput,
  now: () => number = Date.now,
): (at: DownloadProgress) => void {
  let current = { file: "", startedAt: 0, startedWith: 0, drawnAt: 0 };
  return ({ file, done, total }) => {
    const time = now();
    if (file !== current.file) current = { file, startedAt: time, startedWith: done, drawnAt: 0 };
    const finished = done >= total;
    if (finished || time - current.drawnAt >= REDRAW_MS) {
      current.drawnAt = time;
      const seconds = (time - current.startedAt) / 1000;
      const rate = seconds > 0 ? `  ${bytesText((done - current.startedWith) / seconds)}/s` : "";
      const line = `${bar(total === 0 ? 1 : done / total)} ${bytesText(done)}/${bytesText(total)}${rate}  ${file}`;
      // Cut to the width, because a wrapped line could not be redrawn in place.
      output.write(`\r\x1b[2K${line.slice(0, (output.columns ?? 80) - 1)}${finished ? "\n" : ""}`);
    }
    if (finished) current = { file: "", startedAt: 0, startedWith: 0, drawnAt: 0 };
  };
}

function bar(fraction: number): string {
  const filled = Math.round(Math.min(1, fraction) * BAR_WIDTH);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
}
