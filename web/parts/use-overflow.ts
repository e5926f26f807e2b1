// Whether what an element holds is wider than it: the keyboard must reach what can be scrolled, and only that.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function useOverflow<Box extends HTMLElement>(): { box: RefObject<Box | null>; isWider: boolean } {
  const box = useRef<Box>(null);
  const [isWider, setWider] = useState(false);
  const look = () => {
    if (box.current !== null) setWider(box.current.scrollWidth > box.current.clientWidth);
  };
  // what is inside may have grown without the element
  useEffect(look);
  useEffect(() => {
    const watcher = new ResizeObserver(look);
    if (box.current !== null) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return { box, isWider };
}
