// Lines of the server's log: which are kept and which are shown.

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** Further fields are the line's own. */
export interface LogLine {
  /** ISO 8601. */
  at: string;
  level: Level;
  message: string;
  [field: string]: unknown;
}

/** The server sends the last 500 first. */
const MOST_LINES = 1000;

/** The newest of both. */
export function withLines(lines: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  return [...lines, ...more].slice(-MOST_LINES);
}

export function fromLevel(lines: readonly LogLine[], least: Level): readonly LogLine[] {
  return lines.filter(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(least));
}

/** The fields beside the message, as the text log writes them. */
export function fieldsOf({ at: _at, level: _level, message: _message, ...fields }: LogLine): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}
