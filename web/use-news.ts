// The one long-lived stream of a tab: what happens to the caller's policies, steps and jobs. All who listen share it. They are told
// soon after something happened, at most twice a second.
import { useEffect, useRef } from "preact/hooks";
import { follow } from "./follow.ts";
import type { News } from "./policy/news.ts";

const SOON_MS = 500;

type Listener = (news: readonly News[]) => void;

const listeners = new Set<Listener>();
let stream: AbortController | null = null;

/** `onNews` gets what happened since the last call, in order. */
export function useNews(onNews: Listener): void {
  const newest = useRef(onNews);
  newest.current = onNews;
  useEffect(() => listen((news) => newest.current(news)), []);
}

/** Begins the stream with the first listener; the last one that leaves ends it. Returns how to leave. */
function listen(listener: Listener): () => void {
  listeners.add(listener);
  stream ??= begin();
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    stream?.abort();
    stream = null;
  };
}

function begin(): AbortController {
  const gone = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waiting: News[] = [];
  const tell = (news: News) => {
    waiting.push(news);
    timer ??= setTimeout(() => {
      const told = waiting;
      [timer, waiting] = [undefined, []];
      for (const listener of [...listeners]) listener(told);
    }, SOON_MS);
  };
  gone.signal.addEventListener("abort", () => clearTimeout(timer));
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
  return gone;
}
