// A moment: how long ago it was, with the local time and its zone on hover.
import { ago } from "../format.ts";

/** `at`: as the server writes it, in UTC. */
export function Moment({ at }: { at: string }) {
  return (
    <time dateTime={at} title={localTime(at)}>
      {ago(at, Date.now())}
    </time>
  );
}

export function localTime(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}
