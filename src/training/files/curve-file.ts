// Finds the end of a model's metrics.jsonl, which has one line per gradient step and only grows. An incomplete last
// line, left by a crash, is cut off, so that the next line starts where it should.

import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync } from "node:fs";

export interface CurveLine {
  /** The policy step that this gradient step belongs to. */
  step: number;
  /** Gradient steps since the model was created. */
  gradient_step: number;
  time: string;
  [metric: string]: number | string;
}

export interface CurveEnd {
  /** Policy step of the last line. */
  step: number;
  gradientStep: number;
  /** Lines of that policy step. */
  lines: number;
}

const EMPTY: CurveEnd = { step: 0, gradientStep: 0, lines: 0 };
const NEWLINE = 0x0a;

/** Long enough for the lines of most steps. */
const TAIL_BYTES = 1 << 16;

export function cutCurve(file: string): CurveEnd {
  if (!existsSync(file)) return EMPTY;
  const descriptor = openSync(file, "r+");
  try {
    const { size } = fstatSync(descriptor);
    for (let length = TAIL_BYTES; ; length *= 2) {
      const tail = Buffer.alloc(Math.min(size, length));
      const from = size - tail.length;
      readSync(descriptor, tail, 0, tail.length, from);
      const found = endOf(tail, from === 0);
      if (!found) continue;
      if (from + found.bytes < size) ftruncateSync(descriptor, from + found.bytes);
      return found.end;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The last complete line, and the number of lines of its step. null when the tail is too short to tell. */
function endOf(tail: Buffer, whole: boolean): { end: CurveEnd; bytes: number } | null {
  let end: CurveEnd | null = null;
  let bytes = 0;
  let stop = tail.lastIndexOf(NEWLINE) + 1;
  while (stop > 0) {
    const start = stop === 1 ? 0 : tail.lastIndexOf(NEWLINE, stop - 2) + 1;
    if (start === 0 && !whole) return null;
    const line = parseLine(tail.toString("utf8", start, stop));
    if (end && line?.step !== end.step) break;
    if (end) end.lines++;
    else if (line) {
      end = { step: line.step, gradientStep: line.gradient_step, lines: 1 };
      bytes = stop;
    }
    stop = start;
  }
  if (!end && !whole) return null;
  return { end: end ?? EMPTY, bytes };
}

function parseLine(text: string): CurveLine | null {
  try {
    const line = JSON.parse(text) as Partial<CurveLine> | null;
    return Number.isInteger(line?.step) && Number.isInteger(line?.gradient_step) ? (line as CurveLine) : null;
  } catch {
    return null; // cut off by a crash
  }
}
