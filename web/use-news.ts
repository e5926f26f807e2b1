// The one long-lived stream of a tab: what happens to the caller's policies, steps and jobs. A page that uses it is told soon
// after something happened, at most twice a second.
import { useEffect, useRef } from "preact/hooks";
import { follow } from "./follow.ts";

const SOON_MS = 500;

export function useNews(onNews: () => void): void {
  const newest = useRef(onNews);
  newest.current = onNews;
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        newest.current();
      }, SOON_MS);
    };
    // "ready" says only that the stream has begun.
    follow("/preview/events", ({ event }) => event !== "ready" && tell(), gone.signal).catch(() => {
      // A refused key is noted by server.ts; the page stays as it is.
    });
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, []);
}
