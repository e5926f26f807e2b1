// A stretch of a long list. Its rows exist only while they are near the window, so thousands of rows cost no more than a few
// screens of them.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface StretchProps {
  /** How many rows it has. The style sheet guesses its height from this until it was shown once. */
  rows: number;
  /** Whether it is shown before the browser has told where it lies. */
  isFirst: boolean;
  children: () => ComponentChildren;
}

export function Stretch({ rows, isFirst, children }: StretchProps) {
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(isFirst);
  const height = useRef<number | null>(null);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        const { isIntersecting, boundingClientRect, target } = entries.at(-1)!;
        if (!isIntersecting) {
          if (target.contains(document.activeElement)) return; // the focus must not vanish
          if (target.hasChildNodes()) height.current = boundingClientRect.height;
        }
        setNear(isIntersecting);
      },
      { rootMargin: "60% 0px" },
    );
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const kept = isNear || height.current === null ? {} : { height: `${height.current}px` };
  return (
    <div ref={place} class="stretch" style={{ "--rows": rows, ...kept }}>
      {isNear && children()}
    </div>
  );
}
