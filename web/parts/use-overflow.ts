// Whether what an element holds is wider than it: the keyboard must reach what can be scrolled, and only that.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function useOverflow<Box extends HTMLElement>(): { box: RefObject<Box | null>; isWider: boolean } {
  const box = useRef<Box>(null);
  const [isWider, setWider] = useState(false);
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const look = () => setWider(current.scrollWidth > current.clientWidth);
    const watcher = new ResizeObserver(look);
    watcher.observe(current);
    for (const child of current.children) watcher.observe(child);
    return () => watcher.disconnect();
  }, []);
  return { box, isWider };
}
