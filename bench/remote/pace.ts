// The pace of the benchmark's engines: every stream gets its first token at once and then one at each tick, as from a
// model whose step takes this long. Both engines use it, so both give the server the same work at the same times.

export const TICK_MS = 20;
export const VOCABULARY = 6000;

/** The token at `position` of a stream: text of all kinds, never a special token. */
export function tokenAt(stream: number, position: number): number {
  return 300 + ((stream * 31 + position * 17) % (VOCABULARY - 600));
}

export class Ticker {
  readonly #onTick = new Set<() => void>();

  constructor() {
    setInterval(() => {
      for (const tick of [...this.#onTick]) tick();
    }, TICK_MS).unref();
  }

  /** Calls `tick` at once, then at every tick until it returns false. */
  follow(tick: () => boolean): void {
    const once = (): void => {
      if (!tick()) this.#onTick.delete(once);
    };
    this.#onTick.add(once);
    once();
  }
}
