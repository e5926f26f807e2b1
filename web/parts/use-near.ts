// Whether an element is near the window's visible part, for what is too much to draw everywhere. Once near, it stays drawn.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function useNear(): { place: RefObject<HTMLDivElement | null>; isNear: boolean } {
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        setNear(true);
        watcher.disconnect();
      },
      { rootMargin: "600px" },
    );
    watcher.observe(place.current!);
    return () => watcher.disconnect();
  }, []);
  return { place, isNear };
}
