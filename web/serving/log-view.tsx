// The server's log, for admins, as it is written. It is followed only while it is open: a second stream costs a connection.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { follow } from "../follow.ts";
import { messageOf } from "../session.ts";
import { fieldsOf, fromLevel, LEVELS, type Level, type LogLine, withLines } from "./log-lines.ts";

/** Where the reader is. */
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
/** Lines come faster than anyone reads. */
const SHOW_MS = 250;

export function LogView() {
  const lines = useSignal<readonly LogLine[]>([]);
  const level = useSignal<Level>("info");
  const isOpen = useSignal(false);
  const isPaused = useSignal(false);
  const problem = useSignal("");
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (!isOpen.value || isPaused.value) return;
    const gone = new AbortController();
    let waiting: LogLine[] = [];
    const timer = setInterval(() => {
      if (waiting.length > 0) lines.value = withLines(lines.value, waiting);
      waiting = [];
    }, SHOW_MS);
    follow(
      "/logs",
      ({ data }) => waiting.push(JSON.parse(data) as LogLine),
      gone.signal,
      // every connection begins with the last lines
      async () => {
        [lines.value, waiting] = [[], []];
      },
    ).catch((error: unknown) => {
      problem.value = messageOf(error);
    });
    return () => {
      gone.abort();
      clearInterval(timer);
    };
  }, [isOpen.value, isPaused.value]);
  useEffect(() => list.current?.scrollTo(0, list.current.scrollHeight), [lines.value, level.value]);
  const shown = fromLevel(lines.value, level.value);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Log of the server</summary>
      <div class="row">
        <label>
          from level{" "}
          <select value={level.value} onChange={(event) => (level.value = event.currentTarget.value as Level)}>
            {LEVELS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" class="small" onClick={() => (isPaused.value = !isPaused.value)}>
          {isPaused.value ? "Follow" : "Pause"}
        </button>
        <span role="alert">{problem.value}</span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus */}
      <ol ref={list} class="log mono" tabIndex={0} aria-label="Lines of the log">
        {shown.length === 0 && <li class="muted">no lines yet</li>}
        {shown.map((line, i) => (
          <li key={i} class={line.level}>
            {CLOCK.format(new Date(line.at))} {line.level} <b>{line.message}</b> {fieldsOf(line)}
          </li>
        ))}
      </ol>
    </details>
  );
}
