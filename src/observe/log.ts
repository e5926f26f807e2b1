// The log: one line per event on standard error, as text or JSON. It never contains bodies, prompts, generated text or
// tokens.

// The last lines of the log, and those to come, for whoever watches.

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

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export interface LogOptions {
  level: Level;
  format: "text" | "json";
  write?: (line: string) => void;
  now?: () => Date;
  /** Gets the same lines. */
  also?: (line: LogLine) => void;
}

export interface LogLine {
  /** ISO 8601. */
  at: string;
  level: Level;
  message: string;
  /** Plain values. */
  fields: Fields;
}

export function createLog(options: LogOptions): Log {
  const write = options.write ?? ((line: string) => process.stderr.write(line));
  const now = options.now ?? (() => new Date());
  const line = options.format === "json" ? jsonLine : textLine;
  const at = (level: Level) =>
    LEVELS.indexOf(level) < LEVELS.indexOf(options.level)
      ? () => {}
      : (message: string, fields: Fields = {}) => {
          const time = now();
          write(`${printable(line(time, level, message, fields))}\n`);
          options.also?.({ at: time.toISOString(), level, message, fields: plainFields(fields) });
        };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function jsonLine(time: Date, level: Level, message: string, fields: Fields): string {
  return JSON.stringify({ time: time.toISOString(), level, message, ...plainFields(fields) });
}

function plainFields(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, showable(value)]));
}

function textLine(time: Date, level: Level, message: string, fields: Fields): string {
  const pairs = Object.entries(fields).map(([key, value]) => {
    const shown = showable(value);
    return ` ${key}=${typeof shown === "string" && /^[\w./:@+-]+$/.test(shown) ? shown : JSON.stringify(shown)}`;
  });
  return `${time.toISOString()} ${level.padEnd(5)} ${oneLine(message)}${pairs.join("")}`;
}

/** Shows an error with its stack and causes. */
function showable(value: unknown): unknown {
  if (value instanceof Error) {
    const cause = value.cause === undefined ? "" : `\ncaused by: ${String(showable(value.cause))}`;
    return `${value.stack ?? String(value)}${cause}`;
  }
  return typeof value === "bigint" ? value.toString() : value;
}

/** Removes line breaks, so that a message cannot forge a second log line. */
function oneLine(message: string): string {
  return message.replaceAll(/[\r\n]+/g, " ");
}

/** Escapes control and bidirectional characters, so that names from clients cannot steer a terminal. JSON.stringify leaves some of them. */
function printable(line: string): string {
  return line.replaceAll(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
