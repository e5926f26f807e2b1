// What scrolls: the conversation and the panels below it. It follows an answer that grows, unless the reader has scrolled up; a
// button leads back to the end.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Pixels from the end that still count as being there. */
const NEAR_END = 40;

/** `asked` changes with every question: whoever asks wants to see the answer. */
export function Thread({ asked, children }: { asked: string; children: ComponentChildren }) {
  const place = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  /** Where it was scrolled to last, by the reader or by this program. */
  const last = useRef(0);
  const isAway = useSignal(false);
  const toEnd = () => {
    follows.current = true;
    isAway.value = false;
    const node = place.current;
    if (node === null) return; // it is gone: somebody signed out
    node.scrollTop = node.scrollHeight;
    last.current = node.scrollTop;
  };
  useEffect(() => {
    const node = place.current!;
    const distance = () => node.scrollHeight - node.scrollTop - node.clientHeight;
    const onScroll = () => {
      const isUp = node.scrollTop < last.current;
      last.current = node.scrollTop;
      const isNearEnd = distance() <= NEAR_END;
      if (isUp && !isNearEnd) follows.current = false;
      if (!isUp && isNearEnd) follows.current = true;
      isAway.value = !follows.current && !isNearEnd;
    };
    const watcher = new ResizeObserver(() => {
      if (follows.current) toEnd();
      else isAway.value = distance() > NEAR_END;
    });
    node.addEventListener("scroll", onScroll, { passive: true });
    watcher.observe(content.current!);
    watcher.observe(node);
    return () => {
      node.removeEventListener("scroll", onScroll);
      watcher.disconnect();
    };
  }, []);
  useEffect(toEnd, [asked]);
  return (
    <div class="thread">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus */}
      <section ref={place} class="thread-scroll" tabIndex={0} aria-label="Conversation">
        <div ref={content} class="thread-content">
          {children}
        </div>
      </section>
      {isAway.value && (
        <button
          type="button"
          class="to-end"
          onClick={() => {
            toEnd();
            place.current?.focus(); // the button goes
          }}
        >
          ↓ To the end
        </button>
      )}
    </div>
  );
}
