// The one long-lived stream of a tab: what happens to the caller's policies, steps and jobs. A page that uses it is told soon
// after something happened, at most twice a second.
import { useEffect, useRef } from "preact/hooks";
import { follow } from "./follow.ts";
import type { News } from "./policy/news.ts";

const SOON_MS = 500;

/** `onNews` gets what happened since the last call, in order. */
export function useNews(onNews: (news: readonly News[]) => void): void {
  const newest = useRef(onNews);
  newest.current = onNews;
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let waiting: News[] = [];
    const tell = (news: News) => {
      waiting.push(news);
      timer ??= setTimeout(() => {
        const told = waiting;
        [timer, waiting] = [undefined, []];
        newest.current(told);
      }, SOON_MS);
    };
    follow(
      "/preview/events",
      ({ event, data }) => {
        const news = { event, data: JSON.parse(data) } as News;
        // "ready" says only that the stream has begun, unless too much was missed.
        if (news.event !== "ready" || !news.data.complete) tell(news);
      },
      gone.signal,
    ).catch(() => {
      // A refused key is noted by server.ts; the page stays as it is.
    });
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, []);
}
