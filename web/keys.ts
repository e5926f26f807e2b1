// Keyboard shortcuts: single keys, and two in a row such as "g p". They do nothing while the user writes. The help dialog
// lists what is bound at the moment.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Shortcut {
  /** "?", "j", "g p". */
  keys: string;
  what: string;
  run: () => void;
}

/** What is bound at the moment, the newest last. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** How long the second key of a pair may take. */
const PAIR_MS = 1500;

/** Remembers the first key of a pair. */
export class KeyMatcher {
  #first = "";
  #at = Number.NEGATIVE_INFINITY;

  /** The shortcut that `key`, pressed at time `now` in milliseconds, completes; null if none. The newest binding wins. */
  press(key: string, now: number, bound: readonly Shortcut[]): Shortcut | null {
    const pair = now - this.#at <= PAIR_MS ? `${this.#first} ${key}` : key;
    const found = bound.findLast(({ keys }) => keys === pair) ?? bound.findLast(({ keys }) => keys === key) ?? null;
    const begins = found === null && bound.some(({ keys }) => keys.startsWith(`${key} `));
    this.#first = begins ? key : "";
    this.#at = begins ? now : Number.NEGATIVE_INFINITY;
    return found;
  }
}

/** Binds shortcuts while the component is shown. `run` may change with every render. */
export function useShortcuts(own: readonly Shortcut[]): void {
  useEffect(() => {
    shortcuts.value = [...shortcuts.value, ...own];
    return () => {
      shortcuts.value = shortcuts.value.filter((shortcut) => !own.includes(shortcut));
    };
  });
}

export function listenForShortcuts(): void {
  const matcher = new KeyMatcher();
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
    const found = matcher.press(event.key, event.timeStamp, shortcuts.value);
    if (found === null) return;
    event.preventDefault();
    found.run();
  });
}

function isWriting(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !/^(checkbox|radio|range|button|submit)$/.test(target.type);
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName);
}
